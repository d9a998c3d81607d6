import { beforeEach, describe, expect, it } from 'vitest';
import { LaneRoom, levelOf } from './lane-room.js';

describe('the room of a lane', () => {
  it.each([
    [[10, 100, 100], 1000, Infinity],
    [[10, 100, 100], 210, Infinity],
    [[10, 100, 100], 110, 50],
    [[100, 10, 100], 110, 50],
    [[100, 100], 1, 1],
    [[100, 100], 0, 0],
    [[100, 100], -500, 0],
    [[], 0, Infinity],
  ])('for those that want %j is shared out evenly: of %s at most %s each', (wants, room, level) => {
    expect(levelOf(wants, room)).toBe(level);
  });

  describe('when it is asked for', () => {
    let nowMs: number;
    let room: number;
    let measured: number;
    let lane: LaneRoom;

    beforeEach(() => {
      [nowMs, room, measured] = [0, 2000, 0];
      lane = new LaneRoom(
        () => Promise.resolve((measured++, room)),
        () => nowMs,
      );
    });

    it('is not measured for a few', async () => {
      expect(await lane.levelFor([256, 256], false)).toBe(Infinity);
      expect(measured).toBe(0);
    });

    it('is measured anew for those that are looked at later', async () => {
      expect(await lane.levelFor([2048, 2048], false)).toBe(1000);
      room = 500;
      expect(await lane.levelFor([2048], false)).toBe(500);
      expect(measured).toBe(2);
    });

    it('is shared with those that are looked at next, as many as the last time', async () => {
      const sweep = async () => [
        await lane.levelFor([1000, 1000], true),
        await lane.levelFor([1000, 1000], true),
        await lane.levelFor([1000, 1000], false),
      ];
      await sweep();
      expect(measured).toBe(1);
      expect(await sweep()).toEqual([334, 334, 334]);
      expect(measured).toBe(2);
    });

    it('is measured again where looks are due without end', async () => {
      await lane.levelFor([2000], true);
      nowMs += 250;
      room = 100;
      expect(await lane.levelFor([2000], true)).toBe(100);
    });
  });
});
