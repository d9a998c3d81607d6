// Loaded before Heraut with `--import`: in this process it is another time, as on a machine whose clock is wrong.
// Functions that measure durations (performance.now, timers) still run as they should.
const offsetMs = Number(process.env.CLOCK_OFFSET_MS ?? 0);
const RealDate = Date;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [RealDate.now() + offsetMs] : values, newTarget),
  apply: () => new RealDate(RealDate.now() + offsetMs).toString(),
  get: (target, name, receiver) =>
    name === 'now' ? () => RealDate.now() + offsetMs : Reflect.get(target, name, receiver),
});
