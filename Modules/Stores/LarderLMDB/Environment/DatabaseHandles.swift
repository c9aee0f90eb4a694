#if LMDB
import CLMDB
import Larder
import Synchronization

/// The handles of the named databases that the stores of this process have open.
///
/// Each transaction looks at every handle, and an environment has room for a fixed number of them. So a handle that no
/// store has any more is closed before the next one is opened, and its place is used again.
final class DatabaseHandles: Sendable {
  private struct Handle {
    let identifier: MDB_dbi
    var storeCount: Int
  }

  // By the bytes of their names: LMDB tells names apart that are the same text to Swift.
  private let handles = Mutex<[StoreKey: Handle]>([:])

  /// Returns whether there is no room for the handle of one more name.
  func areFull(for name: StoreKey) -> Bool {
    handles.withLock { $0[name] == nil && $0.count >= SharedEnvironment.maximumStoreCount }
  }

  /// Counts one more store that has the named database open.
  func retain(_ name: StoreKey, _ identifier: MDB_dbi) {
    handles.withLock { $0[name, default: Handle(identifier: identifier, storeCount: 0)].storeCount += 1 }
  }

  /// Counts one store less.
  func release(_ name: StoreKey) {
    handles.withLock { $0[name]?.storeCount -= 1 }
  }

  /// Closes the handles that no store has; no transaction that may use one of them goes on.
  func closeUnused(in environment: LMDBEnvironmentPointer) {
    handles.withLock { handles in
      for (name, handle) in handles where handle.storeCount == 0 {
        mdb_dbi_close(environment.pointer, handle.identifier)
        handles[name] = nil
      }
    }
  }
}
#endif
