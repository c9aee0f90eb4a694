#if LMDB
import Larder
import LarderFiles

/// A transaction that could not be committed.
struct FailedCommit: Error {
  let error: LMDBError
  /// Whether its changes may be there all the same.
  let outcome: StoreError.Outcome
}

/// A file of the environment is not at its path any more, so nothing was written.
struct MovedFiles: Error {
  let mismatch: OpenedFiles.Mismatch
}
#endif
