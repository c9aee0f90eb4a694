#if LMDB
import Larder

/// A transaction that could not be committed.
struct FailedCommit: Error {
  let error: LMDBError
  /// Whether its changes may be there all the same.
  let outcome: StoreError.Outcome
}
#endif
