"""A long job keeps what it has so far, and goes on from there. Only the import differs from the published pattern."""

from rlm import Interpreter as ModalInterpreter

with ModalInterpreter(timeout=600, volume_name='rlm-volume-dspy') as interp:
    # Step 1: Process batch and checkpoint
    interp.execute('''
import json, os
os.makedirs('/data/checkpoints', exist_ok=True)
results = [{'item': i, 'processed': True} for i in range(100)]
save_to_volume('checkpoints/batch_1.json', json.dumps(results))
print(f'Checkpoint 1: {len(results)} items')
''')

    # Step 2: Resume from checkpoint
    result = interp.execute('''
import json
raw = load_from_volume('checkpoints/batch_1.json')
previous = json.loads(raw)
more = [{'item': i, 'processed': True} for i in range(100, 200)]
combined = previous + more
save_to_volume('checkpoints/batch_2.json', json.dumps(combined))
SUBMIT(total_processed=len(combined))
''')
    print(f"Total: {result.total_processed}")
