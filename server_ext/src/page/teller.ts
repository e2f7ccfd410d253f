// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** A notification by the browser, for whoever does not want to look at a page again. */
import { ENDED } from '../timeline/index.js';
import type { ITimeline, ITranslator, State } from '../timeline/index.js';

/** The start of a page that has heard nothing of it yet. */
const UNKNOWN = '';

/** What is needed of a browser; a page without https has no permission to give. */
export interface INotifying {
  readonly isSecureContext: boolean;
  readonly sessionStorage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  readonly Notification?: typeof Notification;
}

/**
 * Tells once that a server is ready, or will not be, and only where that was asked for.
 *
 * The wish belongs to one start of a server and to a tab: it outlives the page's reloads,
 * and ends with that start, though nobody was there to see it end.
 */
export class Teller {
  constructor(
    server: string,
    private readonly _trans: ITranslator,
    private readonly _browser: INotifying = window
  ) {
    this._key = `fleet-tell:${server}`;
  }

  /** Say which start the page shows: a wish for an earlier one is over. */
  about(timeline: Pick<ITimeline, 'generation'> | null): void {
    if (timeline === null) {
      return;
    }
    this._start = String(timeline.generation);
    const wished = this._wished();
    if (wished === UNKNOWN) {
      // It was asked for before anything was known of the start.
      this._keep(this._start);
    } else if (wished !== null && wished !== this._start) {
      this.forget();
    }
  }

  /** Whether it was asked for, and has not been told yet. */
  get isAwaited(): boolean {
    return this._wished() !== null;
  }

  /** Ask for it or, where it was, take that back; return what came of it. */
  async press(): Promise<string> {
    const trans = this._trans;
    if (this.isAwaited) {
      this.forget();
      return trans.__('The browser will not tell when it is ready.');
    }
    if (!this._browser.isSecureContext) {
      return trans.__(
        'A browser notifies only from a page that came by https, and this one did not.'
      );
    }
    const { Notification } = this._browser;
    if (!Notification || !canNotify(Notification)) {
      return trans.__('This browser cannot notify from a page.');
    }
    if ((await Notification.requestPermission()) !== 'granted') {
      return trans.__(
        'The browser does not let this page notify. Its settings for this site can change that.'
      );
    }
    this._keep(this._start);
    return trans.__(
      'The browser tells when it is ready, or will not start, while this page stays open.'
    );
  }

  /** Tell it where it is time: it is ready, or there is nothing more to wait for. */
  hear(state: State, more: string): void {
    const isOver = ENDED.has(state);
    if (!this.isAwaited || (state !== 'ready' && !isOver)) {
      return;
    }
    this.forget();
    const title = isOver
      ? this._trans.__('Your server did not start.')
      : this._trans.__('Your server is ready.');
    const { Notification } = this._browser;
    if (Notification?.permission !== 'granted') {
      // Taken back meanwhile.
      return;
    }
    try {
      const told = new Notification(title, { body: more, tag: this._key });
      told.onclick = () => {
        window.focus();
        told.close();
      };
    } catch {
      // A telephone's browser that was asked by another page of this site.
    }
  }

  /** Nothing is to be told any more. */
  forget(): void {
    this._keep(null);
  }

  /** For which start it was asked; null: for none. */
  private _wished(): string | null {
    try {
      return this._browser.sessionStorage.getItem(this._key);
    } catch {
      // A browser can be told to keep nothing.
      return this._wish;
    }
  }

  private _keep(wish: string | null): void {
    this._wish = wish;
    try {
      if (wish !== null) {
        this._browser.sessionStorage.setItem(this._key, wish);
      } else {
        this._browser.sessionStorage.removeItem(this._key);
      }
    } catch {
      // Then for this page alone.
    }
  }

  private readonly _key: string;
  private _start = UNKNOWN;
  private _wish: string | null = null;
}

/** Whether a page may notify by itself: telephones leave that to a worker. */
function canNotify(kind: typeof Notification): boolean {
  if (kind.permission === 'granted') {
    return true;
  }
  try {
    // Without permission nothing is shown.
    new kind('');
    return true;
  } catch {
    return false;
  }
}
