// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * A timeline that keeps itself true on a page of the Hub or of the controller, with
 * one request that the controller holds back until there is news.
 */
import { roughly } from '../timeline/amounts.js';
import {
  ENDED,
  Words,
  asJson,
  asText,
  english,
  fileName,
  instant,
  merge,
  render,
  toFile,
  view
} from '../timeline/index.js';
import type { IAction, ITimeline, State } from '../timeline/index.js';
import { OF_ANOTHER } from '../timeline/phrases.js';
import { ofAnother, translatorOf } from '../timeline/translator.js';
import type { ICatalogue } from '../timeline/translator.js';

const WAIT_SECONDS = 20;
/** How much longer an answer may take before nobody is thought to be there. */
const GRACE_MS = 15_000;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;
const REMARK_MS = 4_000;

/** Where a page gets its timeline, and what it does with the news. */
export interface ILivePage {
  /** Belongs to the timeline; what the server drew in it is changed in place. */
  element: HTMLElement;
  /** What the server knew when it made the page; an empty object: nothing. */
  document: ITimeline | Record<string, never>;
  /** The address that answers with the timeline; empty: nobody is asked. */
  url: string;
  headers?: Record<string, string>;
  /** The words of the page's language; null: English. */
  catalogue?: ICatalogue | null;
  /** Whether the page says already what is now. */
  isTold?: boolean;
  /** Whether the server is somebody else's than the reader's. */
  isAnothers?: boolean;
  /** Called when the state is another one. */
  onState?(now: State, before: State | null): void;
  /** Called when the timeline is not to be had any more: the page is out of date. */
  onGone?(status: number): void;
}

/** Draws the timeline each second while somebody looks, and asks for news. */
export class LiveTimeline {
  constructor(private readonly _page: ILivePage) {
    this._words = wordsOf(_page);
    const known = _page.document as Partial<ITimeline>;
    this._timeline = known.state ? (known as ITimeline) : null;
    this._ahead = this._aheadOf(this._timeline);
    setInterval(() => this.draw(), 1_000);
    addEventListener('online', () => this.draw());
    addEventListener('offline', () => this.draw());
    this.draw();
  }

  /** The words of this page. */
  get words(): Words {
    return this._words;
  }

  /** What is known. */
  get timeline(): ITimeline | null {
    return this._timeline;
  }

  /** What is now, in one sentence; empty: nothing is known. */
  get headline(): string {
    const timeline = this._timeline;
    return timeline
      ? this._words.lead(timeline, view(timeline, Date.now() + this._ahead))
      : '';
  }

  /** How long ago anything was heard. */
  get silentMs(): number {
    return Date.now() - this._heard;
  }

  /** Take news from elsewhere; null: somebody speaks, and knows nothing new. */
  take(news: ITimeline | null): void {
    this._heard = Date.now();
    this._isAway = news === null;
    if (news) {
      const before = this._timeline?.state ?? null;
      this._timeline = merge(this._timeline, news);
      this._ahead = this._aheadOf(news);
      if (news.state !== before) {
        this._page.onState?.(news.state, before);
      }
    }
    this.draw();
  }

  /** Nobody answers, as somebody else has found out. */
  away(): void {
    this._isAway = true;
    this.draw();
  }

  /** Say something above the timeline; empty: nothing any more. */
  note(text: string): void {
    this._note = text;
    this.draw();
  }

  /** End the questions, because the page is about to be left. */
  leave(): void {
    this._isLeaving = true;
    this._asking?.abort();
  }

  /** Ask until it has ended; returns at once when it asks already. */
  async follow(): Promise<void> {
    if (this._isFollowing || !this._page.url) {
      return;
    }
    this._isFollowing = true;
    let pause = FIRST_PAUSE;
    while (!this._isLeaving && !this._isOver) {
      const status = await this._ask().catch(() => 0);
      if ([401, 403, 404].includes(status)) {
        this._page.onGone?.(status);
        return;
      }
      if (status === 200 || status === 304) {
        pause = FIRST_PAUSE;
        continue;
      }
      this._isAway = true;
      this.draw();
      // Together would be a stampede when a controller comes back to many pages.
      await sleep(pause * (0.5 + Math.random() / 2));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  /** Draw what is known as of now; in the background only the tab's title. */
  draw(): void {
    this._title();
    if (document.visibilityState !== 'visible') {
      return;
    }
    const words = this._words;
    if (!this._timeline && !this._notice) {
      // The server's own rows say more than nothing.
      return;
    }
    render(this._page.element, this._timeline, words, {
      now: Date.now() + this._ahead,
      notice: this._notice,
      heard: this._freshness,
      isTold: this._page.isTold ?? false,
      actions: this._actions
    });
  }

  private get _isOver(): boolean {
    return Boolean(this._timeline && ENDED.has(this._timeline.state));
  }

  private get _notice(): string {
    const { trans } = this._words;
    if (!navigator.onLine) {
      return trans.__('You are offline.');
    }
    if (this._isAway) {
      return trans.__('The fleet’s controller does not answer.');
    }
    return this._note;
  }

  private get _freshness(): string {
    const { trans } = this._words;
    const ago = roughly(trans, this.silentMs / 1000);
    if (this._isAway || !navigator.onLine) {
      return trans.__('Last heard %1 ago · trying again', ago);
    }
    return this._isOver || !this._timeline
      ? ''
      : trans.__('live · heard %1 ago', ago);
  }

  private get _actions(): IAction[] {
    const { trans } = this._words;
    const timeline = this._timeline;
    if (!timeline) {
      return [];
    }
    const now = () => Date.now() + this._ahead;
    const copy = (text: string) =>
      void toClipboard(text).then(
        () => this._remark(trans.__('Copied.')),
        () => this._remark(trans.__('The browser did not allow copying.'))
      );
    return [
      {
        key: 'text',
        label: trans.__('Copy as text'),
        run: () => copy(asText(timeline, now()))
      },
      {
        key: 'json',
        label: trans.__('Copy JSON'),
        run: () => copy(asJson(timeline))
      },
      {
        key: 'text-file',
        label: trans.__('Download text'),
        run: () =>
          toFile(fileName(timeline, now(), 'txt'), asText(timeline, now()))
      },
      {
        key: 'json-file',
        label: trans.__('Download JSON'),
        run: () => toFile(fileName(timeline, now(), 'json'), asJson(timeline))
      }
    ];
  }

  /** Say something that is not worth keeping. */
  private _remark(text: string): void {
    this.note(text);
    setTimeout(() => {
      if (this._note === text) {
        this.note('');
      }
    }, REMARK_MS);
  }

  /** A tab in the background tells how far it is. */
  private _title(): void {
    const timeline = this._timeline;
    if (!timeline) {
      return;
    }
    const ahead = timeline.position ?? 0;
    const title =
      ahead > 0
        ? this._words.trans.__('(%1 ahead) %2', ahead, this._pageTitle)
        : `${this.headline} – ${this._pageTitle}`;
    if (document.title !== title) {
      document.title = title;
    }
  }

  private async _ask(): Promise<number> {
    const asking = new AbortController();
    this._asking = asking;
    const limit = WAIT_SECONDS * 1_000 + GRACE_MS;
    const timer = setTimeout(() => asking.abort(), limit);
    const known: Record<string, string> = this._etag
      ? { 'If-None-Match': this._etag }
      : {};
    try {
      const answer = await fetch(`${this._page.url}?wait=${WAIT_SECONDS}`, {
        headers: { ...this._page.headers, ...known },
        credentials: 'same-origin',
        cache: 'no-store',
        signal: asking.signal
      });
      if (answer.status === 200) {
        this._etag = answer.headers.get('Etag');
        this.take((await answer.json()) as ITimeline);
      } else if (answer.status === 304) {
        this._heard = Date.now();
        this._isAway = false;
      }
      return answer.status;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The clocks of server and browser differ: time is counted on the server's. */
  private _aheadOf(timeline: ITimeline | null): number {
    const asOf = instant(timeline?.as_of);
    return asOf === null ? 0 : asOf - Date.now();
  }

  private readonly _words: Words;
  private readonly _pageTitle = pageTitle();
  private _timeline: ITimeline | null;
  private _etag: string | null = null;
  private _heard = Date.now();
  private _ahead: number;
  private _note = '';
  private _isAway = false;
  private _isFollowing = false;
  private _isLeaving = false;
  private _asking: AbortController | null = null;
}

/** A title that the server wrote may say already how many are ahead. */
function pageTitle(): string {
  return document.querySelector('h1')?.textContent.trim() || document.title;
}

/** Over plain http a browser has no clipboard but that of an earlier time. */
async function toClipboard(text: string): Promise<void> {
  if (isSecureContext) {
    return navigator.clipboard.writeText(text);
  }
  const focused = document.activeElement as HTMLElement | null;
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  if (!isCopied) {
    throw new Error('not copied');
  }
}

/** Return the words of a page; English until it has others. */
function wordsOf({
  catalogue = null,
  isAnothers = false
}: Pick<ILivePage, 'catalogue' | 'isAnothers'>): Words {
  const translator = catalogue ? translatorOf(catalogue) : english;
  return new Words(
    isAnothers ? ofAnother(translator, OF_ANOTHER) : translator,
    catalogue?.tag
  );
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}
