#if SQLite
import Larder

/// The read connections of a database.
///
/// A connection belongs to one reader at a time; a new one is opened when all are in use.
final class ReaderPool: Sendable {
  /// The maximum number of idle connections, each of which keeps up to 2 MB of pages.
  private static let idleCapacity = 8

  private let idle = Locked<[SQLiteConnection]>([])

  /// Returns an idle connection, or one that a closure opens.
  func take(opening open: () throws -> SQLiteConnection) throws -> SQLiteConnection {
    try idle.withLock { $0.popLast() } ?? open()
  }

  /// Takes a connection back.
  func giveBack(_ connection: SQLiteConnection) {
    // One whose transaction could not be ended would continue to read an old state.
    guard !connection.isInTransaction else { return }
    // Closed outside the lock, because the last connection that is closed works on the disk.
    let surplus = idle.withLock { idle -> SQLiteConnection? in
      guard idle.count < ReaderPool.idleCapacity else { return connection }
      idle.append(connection)
      return nil
    }
    withExtendedLifetime(surplus) {}
  }

  /// Closes the idle connections.
  func close() {
    let closed = idle.withLock { idle in
      defer { idle = [] }
      return idle
    }
    withExtendedLifetime(closed) {}
  }
}
#endif
