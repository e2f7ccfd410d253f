// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * What is known about this server's admission, and how it is kept fresh.
 *
 * It asks once when it starts. After that it asks only while somebody looks and while
 * there is something to come, with one request that the server holds back until there
 * is news. The answer "unchanged" is no activity of the server, so looking does not
 * keep one alive.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAnswer, IClock, IReply, ISource, Standing } from './answer.js';
import { pageClock } from './answer.js';
import { ENDED, instant } from './timeline/index.js';
import type { ITimeline } from './timeline/index.js';
import { lastSeq, merge } from './timeline/merge.js';

/** How long one request may wait for news: below the half minute of some proxies. */
export const WAIT_SECONDS = 25;
/** How much longer than that an answer may take before nobody is thought to be there. */
const GRACE_SECONDS = 15;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

/** Standings from which only a person, or a reload, leads on. */
const FINAL: ReadonlySet<Standing> = new Set([
  'no_hub',
  'no_permission',
  'no_extension',
  'forbidden'
]);

/** The state that panel, status item and notifications share. */
export class TimelineModel implements IDisposable {
  constructor(
    private readonly _source: ISource,
    private readonly _clock: IClock = pageClock
  ) {}

  /** Emitted when anything but the time has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** How much of it may be trusted. */
  get standing(): Standing {
    return this._isOnline ? this._standing : 'offline';
  }

  /** What exactly is in the way, as a code; null: the standing says it all. */
  get cause(): string | null {
    return this._cause;
  }

  /** The server's own sentence about the standing. */
  get message(): string {
    return this._message;
  }

  /** What was last heard; it stays when nobody answers any more. */
  get timeline(): ITimeline | null {
    return this._timeline;
  }

  /** How many seconds ago the controller was last heard; null: never. */
  get heardSecondsAgo(): number | null {
    return this._heardAt === null
      ? null
      : Math.max(0, (this._clock.now() - this._heardAt) / 1000);
  }

  /** Whether news would be shown as soon as there is some. */
  get isFollowing(): boolean {
    return this._isWatched && this._failures === 0;
  }

  /** Now, by the controller's clock: browser clocks are often wrong. */
  get now(): number {
    return this._clock.now() + this._ahead;
  }

  /** Whether anything is still to come. */
  get isLive(): boolean {
    return (
      !FINAL.has(this._standing) &&
      this._cause !== 'forgotten' &&
      !(this._timeline && ENDED.has(this._timeline.state))
    );
  }

  /** Ask for what is known now. */
  start(): void {
    this._askSoon(0);
  }

  /** Say whether this watcher looks; while one does, it is kept fresh. */
  watch(watcher: object, looks: boolean): void {
    const before = this._watchers.size;
    if (looks) {
      this._watchers.add(watcher);
    } else {
      this._watchers.delete(watcher);
    }
    if (before === 0 && looks) {
      this._askSoon(0);
    } else if (this._watchers.size === 0 && this._standing !== 'loading') {
      // The first question is everybody's: its answer says who wants to look.
      this._pause();
    }
  }

  /** Say whether the page is in sight. */
  setVisible(isVisible: boolean): void {
    if (this._isVisible === isVisible) {
      return;
    }
    this._isVisible = isVisible;
    if (isVisible) {
      this._askSoon(0);
    } else {
      this._pause();
    }
  }

  /** Say whether the browser has a network. */
  setOnline(isOnline: boolean): void {
    if (this._isOnline === isOnline) {
      return;
    }
    this._isOnline = isOnline;
    this._changed.emit();
    if (isOnline) {
      this.refresh();
    } else {
      this._pause();
    }
  }

  /** Ask again at once. */
  refresh(): void {
    this._failures = 0;
    this._etag = null;
    this._pause();
    this._askSoon(0);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._pause();
    Signal.clearData(this);
  }

  private get _isWatched(): boolean {
    return this._watchers.size > 0 && this._isVisible;
  }

  private _pause(): void {
    this._cancelTimer?.();
    this._cancelTimer = null;
    this._asking?.abort();
    this._asking = null;
  }

  private _askSoon(milliseconds: number): void {
    if (this._asking || this._isDisposed || !this._isOnline) {
      return;
    }
    this._cancelTimer?.();
    this._cancelTimer = this._clock.after(milliseconds, () => {
      this._cancelTimer = null;
      void this._ask();
    });
  }

  private async _ask(): Promise<void> {
    const asking = new AbortController();
    this._asking = asking;
    // Without a tag nothing is known, so there is nothing to wait for.
    const waitSeconds = this._etag === null ? 0 : WAIT_SECONDS;
    const cancel = this._clock.after((waitSeconds + GRACE_SECONDS) * 1000, () =>
      asking.abort()
    );
    const reply = await this._source
      .ask({
        after: lastSeq(this._timeline),
        waitSeconds,
        etag: this._etag,
        signal: asking.signal
      })
      .catch(() => null);
    cancel();
    if (this._asking !== asking || this._isDisposed) {
      // Somebody looked away, or asked anew.
      return;
    }
    this._asking = null;
    if (this._isAnothers(reply)) {
      // Only its newest events came: the whole of it is wanted.
      this._timeline = null;
      this._etag = null;
      this._askSoon(0);
      return;
    }
    this._take(reply);
    this._goOn();
  }

  private _isAnothers(reply: IReply | null): boolean {
    const told = reply?.answer?.timeline;
    return Boolean(
      told && this._timeline && told.workload !== this._timeline.workload
    );
  }

  private _goOn(): void {
    if (!this._isWatched || !this.isLive) {
      return;
    }
    // Together would be a stampede when a Hub comes back to a thousand pages.
    const jitter = 0.5 + Math.random() / 2;
    const pause = Math.min(
      LONGEST_PAUSE,
      FIRST_PAUSE * 2 ** (this._failures - 1)
    );
    this._askSoon(this._failures === 0 ? 0 : pause * jitter);
  }

  private _take(reply: IReply | null): void {
    const isUnchanged = reply?.status === 304;
    if (isUnchanged || reply?.answer) {
      this._failures = 0;
    } else {
      this._failures += 1;
      this._etag = null;
    }
    if (isUnchanged) {
      this._heardAgain();
    } else if (reply?.answer) {
      this._etag = reply.etag;
      this._learn(reply.answer);
    } else {
      const wasHeard = this._heardAt !== null;
      this._stand(standingOf(reply?.status ?? null, wasHeard), null, '');
    }
  }

  /** Unchanged while live means that the controller answered within the wait. */
  private _heardAgain(): void {
    if (this._standing === 'live' || this._standing === 'expired') {
      this._heardAt = this._clock.now();
    }
  }

  private _learn(answer: IAnswer): void {
    const heard = answer.heard_seconds_ago;
    if (heard !== null) {
      this._heardAt = this._clock.now() - heard * 1000;
    }
    if (answer.timeline) {
      this._timeline = merge(this._timeline, answer.timeline);
      const asOf = instant(answer.timeline.as_of);
      this._ahead =
        asOf === null || this._heardAt === null ? 0 : asOf - this._heardAt;
    } else if (answer.standing === 'no_permission') {
      this._timeline = null;
    }
    this._stand(answer.standing, answer.cause, answer.message);
  }

  private _stand(
    standing: Standing,
    cause: string | null,
    message: string
  ): void {
    this._standing = standing;
    this._cause = cause;
    this._message = message;
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _watchers = new Set<object>();
  private _standing: Standing = 'loading';
  private _cause: string | null = null;
  private _message = '';
  private _timeline: ITimeline | null = null;
  private _etag: string | null = null;
  private _heardAt: number | null = null;
  private _ahead = 0;
  private _failures = 0;
  private _isVisible = true;
  private _isOnline = true;
  private _isDisposed = false;
  private _asking: AbortController | null = null;
  private _cancelTimer: (() => void) | null = null;
}

/** Judge a reply that is no answer; *wasHeard*: the extension has answered before. */
function standingOf(status: number | null, wasHeard: boolean): Standing {
  if (status === 401 || status === 403) {
    return 'forbidden';
  }
  // A Hub that has just restarted says 404 for servers that it does not know yet.
  return status === 404 && !wasHeard ? 'no_extension' : 'no_server';
}
