// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** How long an answer may take before empty rows say that one is awaited. */
export const SKELETON_AFTER = 300;

/** Says when a wait has become so long that it must be shown; a flicker is none. */
export class Patience {
  /** Whether it has been waited for too long, as of `now`. */
  isOver(isWaiting: boolean, now: number): boolean {
    this._since = isWaiting ? (this._since ?? now) : null;
    return this._since !== null && now - this._since >= SKELETON_AFTER;
  }

  private _since: number | null = null;
}
