python3 -m verl.trainer.main_ppo data.train_files=t.parquet data.val_files=v.parquet actor_rollout_ref.model.path=/m/x
