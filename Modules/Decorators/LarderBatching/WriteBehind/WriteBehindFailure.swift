public import Larder

/// Changes that a ``WriteBehindStore`` had accepted and could not write, and why.
public struct WriteBehindFailure<Value: Sendable>: Sendable {
  /// The changes, the last one to each key; all of them failed together.
  public let changes: ChangeBatch<Value>

  /// Why they could not be written.
  public let error: StoreError

  /// How large the changes are.
  let size: BatchSize
}
