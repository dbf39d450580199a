import { agent, phase, sleep } from '@boardwalk-labs/workflow';

/** Greets whoever the input names, in one sentence that a model writes. */
export default async function run(input, context) {
  phase('Think');
  const name = input?.name ?? 'world';
  console.log(`attempt ${context.attempt} greets ${name}`);
  const greeting = await agent(`Greet ${name} in one sentence.`, { name: 'greeter', builtins: 'none' });

  phase('Finish');
  await sleep('50ms');
  return { greeting, at: new Date() };
}
