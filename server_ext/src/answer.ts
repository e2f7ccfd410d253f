// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** What the notebook server answers about its own timeline, and where it is asked. */
import type { ITimeline } from './timeline/index.js';

/** How much of what is shown may be trusted, as the notebook server says. */
export type ServerStanding =
  'live' | 'no_hub' | 'no_permission' | 'away' | 'expired';

/** The same as seen from the browser, where more can be in the way. */
export type Standing =
  | ServerStanding
  /** Nothing was heard yet. */
  | 'loading'
  /** The browser has no network. */
  | 'offline'
  /** The notebook server does not answer. */
  | 'no_server'
  /** The notebook server has not the part that answers. */
  | 'no_extension'
  /** Whoever looks may not, or is not signed in. */
  | 'forbidden';

/** The document of `fleet/api/timeline`. */
export interface IAnswer {
  schema: string;
  standing: ServerStanding;
  cause: string | null;
  /** An English sentence for causes that have no words here. */
  message: string;
  heard_at: string | null;
  heard_seconds_ago: number | null;
  timeline: ITimeline | null;
}

/** One question. */
export interface IQuestion {
  /** Only events with a higher number are wanted. */
  after: number;
  /** How long an answer may be held back until there is news. */
  waitSeconds: number;
  /** The tag of what is known; with it only a difference is news. */
  etag: string | null;
  signal: AbortSignal;
}

/** One reply; `answer` is null where the status is not 200. */
export interface IReply {
  status: number;
  etag: string | null;
  answer: IAnswer | null;
}

/** Who is asked. Rejects where nobody answers. */
export interface ISource {
  ask(question: IQuestion): Promise<IReply>;
}

/** The clock and the timers of a page; tests bring their own. */
export interface IClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Call back once; returns what cancels it. */
  after(milliseconds: number, callback: () => void): () => void;
}

/** The clock of this page. */
export const pageClock: IClock = {
  now: () => Date.now(),
  after: (milliseconds, callback) => {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  }
};
