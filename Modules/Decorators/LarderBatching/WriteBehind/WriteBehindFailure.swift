public import Larder

/// Changes that a ``WriteBehindStore`` had accepted and could not write, and why.
public struct WriteBehindFailure<Value: Sendable>: Sendable {
  /// The changes, in the order in which they were accepted, including those that a later one replaces.
  ///
  /// All of them failed together.
  public let changes: ChangeBatch<Value>

  /// Why they could not be written.
  public let error: StoreError

  /// How large the changes are.
  let size: BatchSize
}
