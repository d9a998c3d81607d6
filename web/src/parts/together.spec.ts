import { expect, it } from 'vitest';
import { together } from './together.ts';

it('what is asked for at once is read with one request, each id once, a hundred at most', async () => {
  const requests: string[][] = [];
  const read = together((ids) => {
    requests.push(ids);
    return Promise.resolve(new Map(ids.filter((id) => id !== 'none').map((id) => [id, `found ${id}`])));
  });
  const some = Array.from({ length: 99 }, (_, nr) => String(nr));
  const asked = ['a', 'a', 'none', ...some].map((id) => read(id));
  expect((await Promise.all(asked)).slice(0, 4)).toEqual(['found a', 'found a', null, 'found 0']);
  expect(requests.map((ids) => ids.length)).toEqual([100, 1]);
  await read('a');
  expect(requests.at(-1)).toEqual(['a']);
});

it('where the request fails, all who asked are told', async () => {
  const read = together(() => Promise.reject(new Error('refused')));
  const answers = await Promise.allSettled([read('a'), read('b')]);
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
