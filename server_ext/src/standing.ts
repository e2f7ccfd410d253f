// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/** What is said about how fresh the data are, and about what is in the way. */
import type { Standing } from './answer.js';
import type { TimelineModel } from './model.js';
import type { ITranslator } from './timeline/index.js';
import { foreign } from './timeline/foreign.js';
import { roughly } from './timeline/amounts.js';

/** What is needed of a model to say how it stands. */
export type IStanding = Pick<
  TimelineModel,
  | 'standing'
  | 'cause'
  | 'message'
  | 'heardSecondsAgo'
  | 'isFollowing'
  | 'isLive'
>;

/** Return what stands in the way, in words that do not tick; empty: nothing does. */
export function notice(trans: ITranslator, model: IStanding): string {
  const { standing, cause } = model;
  switch (standing) {
    case 'loading':
    case 'live':
      return '';
    case 'offline':
      return trans.__('You are offline.');
    case 'no_hub':
      return trans.__(
        'This server was not started by a JupyterHub with admission control.'
      );
    case 'no_permission':
      return noPermission(trans, cause) || foreign(model.message);
    case 'forbidden':
      return trans.__(
        'You are not signed in to this server, or it is not yours: its admission timeline is its owner’s alone.'
      );
    case 'no_extension':
      return trans.__(
        'This server does not tell its admission timeline: the server extension “fleet_lab” is not enabled.'
      );
    case 'no_server':
      return trans.__('This notebook server does not answer.');
    case 'away':
      return cause === 'not_understood'
        ? trans.__(
            'The fleet’s controller answers something that is not understood here.'
          )
        : trans.__('The fleet’s controller does not answer.');
    case 'expired':
      return cause === 'forgotten'
        ? trans.__('The controller no longer keeps this server’s timeline.')
        : trans.__('Older steps are no longer kept.');
    default:
      return foreign(model.message);
  }
}

function noPermission(trans: ITranslator, cause: string | null): string {
  switch (cause) {
    case 'token_missing':
      return trans.__(
        'This server was started without a timeline token. Restart it to see its admission timeline.'
      );
    case 'token_revoked':
      return trans.__(
        'This server’s timeline token is no longer valid. Restart the server to see its admission timeline.'
      );
    case 'other_server':
      return trans.__(
        'The timeline token belongs to another server. Restart this one to see its own admission timeline.'
      );
    default:
      return '';
  }
}

/** Whether what is shown may be older than it looks. */
export function isStale(standing: Standing): boolean {
  return ['away', 'no_server', 'offline'].includes(standing);
}

/** Whether asking again could change what is shown; what is live changes by itself. */
export function canTryAgain({ standing, isLive }: IStanding): boolean {
  if (standing === 'loading' || standing === 'no_hub') {
    return false;
  }
  // An end is followed no further, but the server may have been started anew.
  return !isLive || !['live', 'expired'].includes(standing);
}

/** Return how fresh the data are. It ticks, so it must not be spoken. */
export function heard(trans: ITranslator, model: IStanding): string {
  const seconds = model.heardSecondsAgo;
  const stale = isStale(model.standing);
  if (seconds === null) {
    return stale && model.standing !== 'offline'
      ? trans.__('Never heard · trying again')
      : '';
  }
  const ago = roughly(trans, seconds);
  if (stale) {
    return model.standing === 'offline'
      ? trans.__('Last heard %1 ago', ago)
      : trans.__('Last heard %1 ago · trying again', ago);
  }
  return model.isFollowing && model.isLive
    ? trans.__('live · heard %1 ago', ago)
    : trans.__('heard %1 ago', ago);
}
