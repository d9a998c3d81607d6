import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EndpointWindow, EndpointWindows } from './endpoint-window.js';

describe('the window of an endpoint', () => {
  let nowMs: number;
  let window: EndpointWindow;

  beforeEach(() => {
    jest.useFakeTimers();
    nowMs = 0;
    window = new EndpointWindow(128, () => nowMs);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Enters as often as there is room at once. What then stands in line gives up. */
  function fill(window: EndpointWindow): number {
    let entered = 0;
    while (window.enter() === undefined) entered++;
    nowMs += 2000; // nothing has been completed for so long that there is nothing to hope for
    jest.advanceTimersByTime(250);
    return entered;
  }

  /** Fills it and ends all calls, which leaves the window as large as those ends made it. */
  function round(isHealthy: boolean): number {
    const open = fill(window);
    for (let i = 0; i < open; i++) window.leave(isHealthy ? 'healthy' : 'unhealthy', 10);
    return open;
  }

  it('lets eight calls to an unknown endpoint be open', () => {
    expect(fill(window)).toBe(8);
  });

  it('widens by one for every success, up to its maximum', () => {
    expect([round(true), round(true), round(true), round(true)]).toEqual([8, 16, 32, 64]);
    expect([round(true), round(true)]).toEqual([128, 128]);
  });

  it('halves for every failure, down to one call', () => {
    round(true);
    const open = fill(window);
    expect(open).toBe(16);
    window.leave('unhealthy', 10);
    for (let i = 1; i < open; i++) window.leave('healthy', 10); // half of 16, and 15 successes
    expect(round(false)).toBe(23);
    expect([round(false), round(true), round(true), round(true)]).toEqual([1, 1, 2, 4]);
  });

  it('lets one who waits in when a call ends, first come first', async () => {
    fill(window);
    const entered: number[] = [];
    for (const nr of [1, 2, 3]) void Promise.resolve(window.enter()).then((held) => held ?? entered.push(nr));
    window.leave('unhealthy', 10); // a window of 4, in which 7 are open
    for (let i = 0; i < 2; i++) window.leave('healthy', 10); // of 6, in which 5 are open
    await jest.advanceTimersByTimeAsync(0);
    expect(entered).toEqual([1]);
    window.leave('healthy', 10);
    await jest.advanceTimersByTimeAsync(0);
    expect(entered).toEqual([1, 2, 3]);
  });

  it('turns away who waited 250 ms in vain', async () => {
    fill(window);
    const entered = Promise.resolve(window.enter());
    let answer: unknown = 'none yet';
    void entered.then((held) => (answer = held));
    await jest.advanceTimersByTimeAsync(249);
    expect(answer).toBe('none yet');
    await jest.advanceTimersByTimeAsync(1);
    expect(answer).toMatchObject({ state: 'held', attempt: null });
    // Nobody is in line any more who would take the room.
    for (let i = 0; i < 8; i++) window.leave('healthy', 10);
    expect(fill(window)).toBe(16);
  });

  it('lets those wait on whom the endpoint, as fast as it was in the last second, will get to within a second', async () => {
    fill(window);
    for (let i = 0; i < 2; i++) window.leave('healthy', 10);
    for (let i = 0; i < 4; i++) expect(window.enter()).toBeUndefined(); // a window of 10, in which 6 were open
    const answers: (string | undefined)[] = ['waits', 'waits', 'waits'];
    answers.forEach((_, nr) => void Promise.resolve(window.enter()).then((held) => (answers[nr] = held?.state)));
    await jest.advanceTimersByTimeAsync(250);
    expect(answers).toEqual(['waits', 'waits', 'held']);
    nowMs += 1999; // still the second before
    await jest.advanceTimersByTimeAsync(250);
    expect(answers).toEqual(['waits', 'waits', 'held']);
    nowMs += 1;
    await jest.advanceTimersByTimeAsync(250);
    expect(answers).toEqual(['held', 'held', 'held']);
  });

  it('counts on no call that ended badly', async () => {
    fill(window);
    window.leave('unhealthy', 10);
    let state: string | undefined;
    void Promise.resolve(window.enter()).then((held) => (state = held?.state));
    await jest.advanceTimersByTimeAsync(250);
    expect(state).toBe('held');
  });

  it('turns away at once when the line is sixteen times as long as the window', () => {
    fill(window);
    for (let i = 0; i < 8 * 16; i++) expect(window.enter()).toBeInstanceOf(Promise);
    expect(window.enter()).toMatchObject({ state: 'held' });
  });

  /** Turns away one more: nothing fits into its line any more. */
  const heldMs = () => (window.enter() as { delayMs: number }).delayMs;

  it('spreads what it turns away at the speed the endpoint has shown', () => {
    fill(window);
    for (let i = 0; i < 8 * 16; i++) void window.enter();
    nowMs = 100_000;
    // 100 ms a call, eight at once: one every 12.5 ms.
    const delays = Array.from({ length: 100 }, heldMs);
    expect(delays[0]).toBe(250); // never sooner than that
    expect(delays[99]).toBeCloseTo(1250);
    nowMs += 10_000;
    expect(heldMs()).toBe(250);
  });

  it('holds nothing longer than a minute', () => {
    fill(window);
    for (let i = 0; i < 8; i++) window.leave('unhealthy', 10_000_000);
    void window.enter(); // the one call that may still be open
    for (let i = 0; i < 16; i++) void window.enter();
    for (let i = 0; i < 100; i++) expect(heldMs()).toBeLessThanOrEqual(60_000);
    expect(heldMs()).toBe(60_000);
  });
});

describe('the windows of all endpoints', () => {
  it('are one for each callback URL', () => {
    const windows = new EndpointWindows(128, () => 0);
    expect(windows.of('http://a/')).toBe(windows.of('http://a/'));
    expect(windows.of('http://a/')).not.toBe(windows.of('http://b/'));
  });

  it('forget those that are idle, and keep those in use, when there are many', () => {
    let nowMs = 0;
    const windows = new EndpointWindows(128, () => nowMs);
    const used = windows.of('http://used/');
    void used.enter();
    const idle = windows.of('http://idle/');
    nowMs = 1;
    for (let i = 0; i < 1000; i++) windows.of(`http://${i}/`);
    expect(windows.of('http://used/')).toBe(used);
    expect(windows.of('http://idle/')).not.toBe(idle);
  });
});
