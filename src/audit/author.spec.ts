import { describe, expect, it, vi } from 'vitest';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { actingFor, asNobody, currentAuthor, type Author } from './author.js';

const author = (client: string): Author => ({ client, address: '127.0.0.1', requestId: client });

describe('the author of a change', () => {
  it('is that of the request, however many are carried out at the same time', async () => {
    const seen = await Promise.all(
      ['one', 'two', 'three'].map((client) =>
        actingFor(author(client), async () => {
          await turn();
          await Promise.resolve();
          return currentAuthor()?.client;
        }),
      ),
    );
    expect(seen).toEqual(['one', 'two', 'three']);
  });

  it('is nobody outside of a request, also while there is one', async () => {
    expect(currentAuthor()).toBeUndefined();
    let end = () => {};
    const request = actingFor(author('one'), () => new Promise<void>((resolve) => (end = resolve)));
    await turn();
    expect(currentAuthor()).toBeUndefined();
    end();
    await request;
    expect(currentAuthor()).toBeUndefined();
  });

  it('stays that of the other request when one ends, or fails', async () => {
    let end = () => {};
    const other = actingFor(author('other'), async () => {
      await new Promise<void>((resolve) => (end = resolve));
      return currentAuthor()?.client;
    });
    await expect(actingFor(author('failing'), () => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    end();
    expect(await other).toBe('other');
  });

  it('is nobody for what Heraut does by itself because of a request, and the same again after that', async () => {
    const seen: (string | undefined)[] = [];
    const see = () => seen.push(currentAuthor()?.client);
    await actingFor(author('one'), async () => {
      const own = asNobody(async () => {
        see();
        await turn();
        await Promise.resolve();
        see();
      });
      see();
      await own;
      see();
    });
    expect(seen).toEqual([undefined, 'one', undefined, 'one']);
  });

  it('costs other work nothing once the last request has ended', async () => {
    const switchedOff = vi.spyOn(AsyncLocalStorage.prototype, 'disable');
    let end = () => {};
    const long = actingFor(author('long'), () => new Promise<void>((resolve) => (end = resolve)));
    await actingFor(author('short'), () => turn());
    expect(switchedOff).toHaveBeenCalledTimes(0);
    end();
    await long;
    expect(switchedOff).toHaveBeenCalledTimes(1);
    expect(await actingFor(author('next'), () => turn().then(() => currentAuthor()?.client))).toBe('next');
    switchedOff.mockRestore();
  });
});
