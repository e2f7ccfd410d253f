// Written by scripts/generate_contract.py from fleet_contracts; do not edit.

export const SCHEMA = 'jupyterhub-fleet/timeline/v1';

export const VERSION = '0.1.0';

export type State =
  | 'requested'
  | 'queued'
  | 'placed'
  | 'preparing'
  | 'starting'
  | 'ready'
  | 'stopping'
  | 'unknown'
  | 'stopped'
  | 'failed'
  | 'refused';

export type Phase =
  | 'asked'
  | 'waiting'
  | 'placed'
  | 'starting'
  | 'ready';

export type TimelineKind =
  | 'asked'
  | 'waiting'
  | 'parked'
  | 'placed'
  | 'preparing'
  | 'progress'
  | 'starting'
  | 'ready'
  | 'stopping'
  | 'stopped'
  | 'failed'
  | 'refused'
  | 'silent'
  | 'returned'
  | 'note';

export type ReasonKind =
  | 'never'
  | 'not_now'
  | 'busy'
  | 'not_allowed'
  | 'failed'
  | 'info';

export type Reason =
  | 'invalid_request'
  | 'profile_required'
  | 'profile_unknown'
  | 'class_unknown'
  | 'option_unknown'
  | 'foreign_link'
  | 'runtime_none_matches'
  | 'endpoints_not_built'
  | 'model_invalid'
  | 'exceeds_any_machine'
  | 'exceeds_quota_ever'
  | 'isolation_too_weak'
  | 'not_in_audience'
  | 'owner_forbids'
  | 'quota_in_use'
  | 'user_limit'
  | 'driver_unavailable'
  | 'os_mismatch'
  | 'accelerator_mismatch'
  | 'runtime_missing'
  | 'support_missing'
  | 'capability_missing'
  | 'driver_too_old'
  | 'device_model_mismatch'
  | 'compute_capability_too_low'
  | 'vram_too_small'
  | 'gpu_count_too_small'
  | 'cpu_too_small'
  | 'memory_too_small'
  | 'disk_too_small'
  | 'label_mismatch'
  | 'data_not_local'
  | 'copy_not_offered'
  | 'offline'
  | 'copy_source_away'
  | 'draining'
  | 'outside_hours'
  | 'owner_at_work'
  | 'presence_unknown'
  | 'on_battery'
  | 'owner_closed'
  | 'unhealthy'
  | 'foreign_process'
  | 'device_lost'
  | 'same_device'
  | 'agent_too_old'
  | 'keeps_no_files'
  | 'quarantined'
  | 'lease_unknown'
  | 'capabilities_unknown'
  | 'controller_recovering'
  | 'controller_unreachable'
  | 'address_unknown'
  | 'address_refused'
  | 'address_unreachable'
  | 'network_not_trusted'
  | 'gpu_busy'
  | 'metal_busy'
  | 'cpu_busy'
  | 'memory_busy'
  | 'disk_busy'
  | 'behind'
  | 'not_evaluated_yet'
  | 'no_machines'
  | 'agent_rejected'
  | 'epoch_stale'
  | 'selection_mismatch'
  | 'sandbox_missing'
  | 'environment_broken'
  | 'environment_hash_mismatch'
  | 'disk_full'
  | 'prepare_failed'
  | 'prepare_timeout'
  | 'accelerator_not_used'
  | 'start_failed'
  | 'start_timeout'
  | 'port_taken'
  | 'server_exited'
  | 'out_of_memory'
  | 'machine_rebooted'
  | 'machine_lost'
  | 'ledger_lost'
  | 'copy_failed'
  | 'copy_timeout'
  | 'copy_too_large'
  | 'stopped_by_user'
  | 'stopped_by_admin'
  | 'stopped_by_hub'
  | 'left_the_line'
  | 'time_limit'
  | 'idle_limit'
  | 'idle_soon'
  | 'cut_off'
  | 'not_claimed'
  | 'place_kept'
  | 'place_moved'
  | 'release_asked'
  | 'release_wished'
  | 'metal_reserved'
  | 'metal_shared'
  | 'promise_broken'
  | 'retired'
  | 'files_copied'
  | 'files_to_copy'
  | 'device_returned'
  | 'keep_class'
  | 'copy_files'
  | 'fresh_folder';

export type SetBy =
  | 'class'
  | 'profile';

export interface IExplanation {
  reason: Reason;
  machine?: string | null;
  subject?: string | null;
  requested?: number | null;
  capacity?: number | null;
  free?: number | null;
  unit?: string | null;
  position?: number | null;
  holders?: readonly IHolder[] | null;
  detail?: string | null;
}

export interface IHolder {
  workload: string;
  owner?: string | null;
  own?: boolean | null;
  promised?: boolean | null;
  title?: string | null;
  amount?: number | null;
  since?: string | null;
  ends_by?: string | null;
  idle_since?: string | null;
  idle_ends?: string | null;
  likely_end?: ILikelyEnd | null;
  handle?: string | null;
  asked_at?: string | null;
}

export interface ILikelyEnd {
  early: string;
  late: string;
  samples: number;
}

export interface ILikelyStart {
  early: string;
  late: string;
  samples: number;
}

export interface ILimits {
  starts_by?: string | null;
  likely?: ILikelyStart | null;
  longer_than_usual?: boolean | null;
  cpu_milli?: number | null;
  memory_bytes?: number | null;
  devices?: number | null;
  metal_reserved?: boolean | null;
  ends_at?: string | null;
  time_limits?: ITimeLimits | null;
  idle_ends?: string | null;
}

export interface IProgress {
  step: string;
  done?: number | null;
  total?: number | null;
  unit?: string | null;
}

export interface ITimeLimit {
  seconds: number;
  set_by?: SetBy | null;
}

export interface ITimeLimits {
  limit?: ITimeLimit | null;
  idle_limit?: ITimeLimit | null;
}

export interface ITimelineEvent {
  seq: number;
  generation: number;
  at: string;
  kind: TimelineKind;
  state: State;
  actor?: string | null;
  machine?: string | null;
  explanation?: IExplanation | null;
  progress?: IProgress | null;
}

export interface ITimeline {
  schema?: string | null;
  as_of: string;
  workload: string;
  generation: number;
  user: string;
  server: string;
  profile?: string | null;
  profile_title?: string | null;
  profile_version?: string | null;
  class?: string | null;
  machine?: string | null;
  state: State;
  phase: Phase;
  position?: number | null;
  parked?: boolean | null;
  headline: string;
  explanation?: IExplanation | null;
  limits?: ILimits | null;
  events?: readonly ITimelineEvent[] | null;
  truncated?: boolean | null;
}

export const HOLDING: ReadonlySet<State> = new Set<State>(['placed', 'preparing', 'starting', 'ready', 'stopping', 'unknown']);

export const ENDED: ReadonlySet<State> = new Set<State>(['stopped', 'failed', 'refused']);

export const PHASE_OF: Readonly<Record<State, Phase>> = {
  requested: 'asked',
  queued: 'waiting',
  placed: 'placed',
  preparing: 'starting',
  starting: 'starting',
  ready: 'ready',
  stopping: 'ready',
  unknown: 'ready',
  stopped: 'ready',
  failed: 'ready',
  refused: 'asked'
};

export const KIND_OF: Readonly<Record<Reason, ReasonKind>> = {
  invalid_request: 'never',
  profile_required: 'never',
  profile_unknown: 'never',
  class_unknown: 'never',
  option_unknown: 'never',
  foreign_link: 'never',
  runtime_none_matches: 'never',
  endpoints_not_built: 'never',
  model_invalid: 'never',
  exceeds_any_machine: 'never',
  exceeds_quota_ever: 'never',
  isolation_too_weak: 'not_allowed',
  not_in_audience: 'not_allowed',
  owner_forbids: 'not_allowed',
  quota_in_use: 'busy',
  user_limit: 'busy',
  driver_unavailable: 'never',
  os_mismatch: 'never',
  accelerator_mismatch: 'never',
  runtime_missing: 'never',
  support_missing: 'never',
  capability_missing: 'never',
  driver_too_old: 'never',
  device_model_mismatch: 'never',
  compute_capability_too_low: 'never',
  vram_too_small: 'never',
  gpu_count_too_small: 'never',
  cpu_too_small: 'never',
  memory_too_small: 'never',
  disk_too_small: 'never',
  label_mismatch: 'never',
  data_not_local: 'never',
  copy_not_offered: 'never',
  offline: 'not_now',
  copy_source_away: 'not_now',
  draining: 'not_now',
  outside_hours: 'not_now',
  owner_at_work: 'not_now',
  presence_unknown: 'not_now',
  on_battery: 'not_now',
  owner_closed: 'not_now',
  unhealthy: 'not_now',
  foreign_process: 'not_now',
  device_lost: 'not_now',
  same_device: 'not_now',
  agent_too_old: 'not_now',
  keeps_no_files: 'not_now',
  quarantined: 'not_now',
  lease_unknown: 'not_now',
  capabilities_unknown: 'not_now',
  controller_recovering: 'not_now',
  controller_unreachable: 'not_now',
  address_unknown: 'not_now',
  address_refused: 'not_now',
  address_unreachable: 'not_now',
  network_not_trusted: 'not_now',
  gpu_busy: 'busy',
  metal_busy: 'busy',
  cpu_busy: 'busy',
  memory_busy: 'busy',
  disk_busy: 'busy',
  behind: 'busy',
  not_evaluated_yet: 'not_now',
  no_machines: 'not_now',
  agent_rejected: 'not_now',
  epoch_stale: 'not_now',
  selection_mismatch: 'not_now',
  sandbox_missing: 'never',
  environment_broken: 'failed',
  environment_hash_mismatch: 'failed',
  disk_full: 'failed',
  prepare_failed: 'failed',
  prepare_timeout: 'failed',
  accelerator_not_used: 'failed',
  start_failed: 'failed',
  start_timeout: 'failed',
  port_taken: 'failed',
  server_exited: 'failed',
  out_of_memory: 'failed',
  machine_rebooted: 'failed',
  machine_lost: 'failed',
  ledger_lost: 'failed',
  copy_failed: 'failed',
  copy_timeout: 'failed',
  copy_too_large: 'failed',
  stopped_by_user: 'info',
  stopped_by_admin: 'info',
  stopped_by_hub: 'info',
  left_the_line: 'info',
  time_limit: 'info',
  idle_limit: 'info',
  idle_soon: 'info',
  cut_off: 'info',
  not_claimed: 'info',
  place_kept: 'info',
  place_moved: 'info',
  release_asked: 'info',
  release_wished: 'info',
  metal_reserved: 'info',
  metal_shared: 'info',
  promise_broken: 'info',
  retired: 'info',
  files_copied: 'info',
  files_to_copy: 'info',
  device_returned: 'info',
  keep_class: 'info',
  copy_files: 'info',
  fresh_folder: 'info'
};
