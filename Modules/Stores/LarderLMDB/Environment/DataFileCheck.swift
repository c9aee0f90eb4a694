#if LMDB
import CLMDB
import Larder
import LarderFiles
import Synchronization

/// The check of a process that only reads that it has the data file open that others write.
///
/// A process that writes compares the files with each write. After a replacement it can still read and save what it has.
final class DataFileCheck: Sendable {
  private let path: String
  private let environment: LMDBEnvironmentPointer
  private let watch: ReplacedFileWatch

  /// The number of the transaction that was compared last.
  private let checked = Atomic<Int>(-1)

  /// Creates the check of an environment.
  init(_ opened: OpenedEnvironment) {
    path = opened.files.dataFile
    environment = opened.pointer
    watch = ReplacedFileWatch(opened.identity, at: opened.files.dataFile)
  }

  /// Throws an error if another file is at the path of the data file, or if the data file lacks a transaction that has
  /// begun to read.
  ///
  /// A reader gets the number of the latest transaction from the lock file. The data file lacks it if others write another
  /// one, as after the copy-up of an overlay file system, or after an older state was written over it.
  ///
  /// - Parameters:
  ///   - transaction: The transaction. It has begun to read.
  ///   - operation: The operation, for errors.
  ///   - store: The name of the store in errors.
  /// - Throws: ``StoreError``: `conflict`; `ioFailed`.
  func check(_ transaction: OpaquePointer, during operation: StoreOperation, store: String) throws {
    let isReplaced: Bool
    do {
      isReplaced = try watch.isReplaced()
    } catch {
      throw StoreError(
        error, during: operation, store: store, message: "the files of the environment could not be checked")
    }
    if isReplaced { throw conflict("was replaced", during: operation, store: store) }
    let identifier = mdb_txn_id(transaction)
    guard checked.load(ordering: .relaxed) != identifier else { return }
    // The transaction keeps the memory map, which has the number, in place.
    var information = MDB_envinfo()
    mdb_env_info(environment.pointer, &information)
    guard information.me_last_txnid >= identifier else {
      throw conflict("is not the one that other programs write", during: operation, store: store)
    }
    checked.store(identifier, ordering: .relaxed)
  }

  private func conflict(_ event: String, during operation: StoreOperation, store: String) -> StoreError {
    StoreError(
      .conflict, during: operation, store: store,
      message: "\(path), as it was opened, \(event); close all stores of the environment and open it again")
  }
}
#endif
