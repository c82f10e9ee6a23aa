"""verl's agent loop for tools, which also gives the reward the messages of each rollout.

verl 0.9's loop has the messages, and drops them with its other state. This one puts them into
`extra_fields["extras"]`, which the managers `naive`, `remote` and `rate_limited` add to `extra_info`; verl
has a value under `extras` in the batches of every loop, so that rows with and without tools stay together.
docs/how-to/conversations.md has the overrides.
"""

from typing import Any

from verl.experimental.agent_loop.tool_agent_loop import AgentData, AgentState, ToolAgentLoop

from rewardkit.scorers.conversation import EXTRAS, MESSAGES


class RolloutMessagesLoop(ToolAgentLoop):  # type: ignore[misc]  # verl has no types
    """`tool_agent` with messages: those of the model with its calls, and the results of tools as text."""

    async def _handle_pending_state(self, agent_data: AgentData, *args: Any) -> AgentState:
        agent_data.prompt_messages = len(agent_data.messages)
        return await super()._handle_pending_state(agent_data, *args)

    async def _handle_generating_state(
        self, agent_data: AgentData, *args: Any, **kwargs: Any
    ) -> AgentState:
        n = len(agent_data.messages)
        state = await super()._handle_generating_state(agent_data, *args, **kwargs)
        if len(agent_data.messages) == n:  # verl adds no message for a turn at which a limit ends
            text = self.tokenizer.decode(agent_data.response_ids, skip_special_tokens=True)
            agent_data.messages.append({"role": "assistant", "content": text})
        self._pass_on(agent_data)
        return state

    async def _handle_processing_tools_state(self, agent_data: AgentData) -> AgentState:
        state = await super()._handle_processing_tools_state(agent_data)
        self._pass_on(agent_data)
        return state

    def _pass_on(self, agent_data: AgentData) -> None:
        messages = agent_data.messages[agent_data.prompt_messages :]
        agent_data.extra_fields[EXTRAS] = {MESSAGES: [self._plain(message) for message in messages]}

    def _plain(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message without images and the marks of the chat template, such as `<|im_end|>`."""
        content = message["content"]
        if not isinstance(content, str):
            content = "".join(part.get("text", "") for part in content)
        if message["role"] == "assistant":  # parsers of calls leave the marks in the text
            for mark in self.tokenizer.all_special_tokens:
                content = content.replace(mark, "")
        return {**message, "content": content}
