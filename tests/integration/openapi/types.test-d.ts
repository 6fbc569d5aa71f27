// The SDK's types against those made of the OpenAPI document. Only compiled: what tsc accepts, holds.
import type { components } from './schema';
import type * as sdk from 'airlock-sdk';

type Schemas = components['schemas'];
type Sent<T, Own extends keyof any> = Omit<T, 'signal' | 'idempotencyKey' | Own>;
/** Neither has a property that the other does not know. */
type SameKeys<A, B> = [keyof A] extends [keyof B] ? ([keyof B] extends [keyof A] ? true : never) : never;
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never;

// What the API tells is what the SDK says it tells.
export const result = (told: Schemas['ExecResult']): Omit<sdk.ExecResult, 'assertOk'> => told;
export const context = (told: Schemas['Context']): sdk.ContextDescription => told;
export const shell = (told: Schemas['Shell']): sdk.ShellDescription => told;
export const file = (told: Schemas['FileEntry']): sdk.FileEntry => told;
export const port = (told: Schemas['Port']): sdk.Port => told;
export const contextPort = (told: Schemas['ContextPort']): sdk.ContextPort => told;
export const terminal = (told: Schemas['TerminalInfo']): Omit<sdk.TerminalInfo, 'exec'> => told;
export const decision = (told: Schemas['RouteDecision']): Awaited<ReturnType<sdk.Context['explainRoute']>> => told;
export const route = (told: Schemas['RouteEvent']): Partial<sdk.RouteEvent> => told;

// What the SDK takes is what the API takes.
export const spec = (given: Sent<sdk.ContextSpec, 'ifExists' | 'childContext'>): Schemas['ContextSpec'] => given;
export const lifespan = (given: sdk.Lifespan): Schemas['ContextChanges'] => given;
export const options = (given: Sent<sdk.ExecOptions, 'timeout'>): Omit<Schemas['ExecRequest'], 'command' | 'argv'> => given;

// Nothing is left out on either side.
export const all: true[] = [
  true satisfies SameKeys<Omit<sdk.ExecResult, 'assertOk'>, Schemas['ExecResult']>,
  true satisfies SameKeys<sdk.ContextDescription, Schemas['Context']>,
  true satisfies SameKeys<sdk.ShellDescription, Schemas['Shell']>,
  true satisfies SameKeys<sdk.FileEntry, Schemas['FileEntry']>,
  true satisfies SameKeys<sdk.Port, Schemas['Port']>,
  true satisfies SameKeys<sdk.ContextPort, Schemas['ContextPort']>,
  true satisfies SameKeys<Sent<sdk.ContextSpec, 'ifExists'>, Schemas['ContextSpec']>,
  true satisfies SameKeys<Sent<sdk.ExecOptions, 'timeout'>, Omit<Schemas['ExecRequest'], 'command' | 'argv' | 'tty'>>,
  true satisfies SameKeys<sdk.TerminalInfo, Schemas['TerminalInfo']>,
  true satisfies SameKeys<Sent<sdk.TerminalOptions, 'command'>, Omit<Schemas['TerminalRequest'], 'command' | 'argv'>>,
  true satisfies Same<sdk.ProblemCode, Schemas['Problem']['code']>,
  true satisfies Same<sdk.Status, Schemas['Exec']['status']>,
];

// A control: without these, a document that says nothing would pass.
// @ts-expect-error there is no such field
export const control1 = (told: Schemas['Context']) => told.colour;
// @ts-expect-error it is a number
export const control2: Schemas['Exec']['durationMs'] = 'long';
