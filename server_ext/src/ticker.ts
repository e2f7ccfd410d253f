// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** Calls back as time passes, between `start` and `stop`, while the page is in sight. */
export class Ticker {
  constructor(
    private readonly _tick: () => void,
    private readonly _milliseconds: number
  ) {}

  /** Call back at once, and then at each interval. */
  start(): void {
    this.stop();
    this._timer = setInterval(() => {
      if (document.visibilityState === 'visible') {
        this._tick();
      }
    }, this._milliseconds);
    this._tick();
  }

  stop(): void {
    clearInterval(this._timer);
  }

  private _timer: ReturnType<typeof setInterval> | undefined;
}
