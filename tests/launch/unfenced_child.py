"""The child process of an import without the kernel's fence, as where there is none."""

from rewardkit.launch.script_import import bash_child

bash_child.IS_FENCED = False
serve = bash_child.serve
