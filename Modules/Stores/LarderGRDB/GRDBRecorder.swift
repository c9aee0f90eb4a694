#if GRDB
import Foundation
import GRDB
import Larder
import LarderSQLiteFormat

/// Records the changes of a table in the running transaction, and reports them to the observers of a store once it is
/// committed.
///
/// The store tells the keys of its own changes. GRDB asks before each statement whether the changes of a table are observed,
/// which tells of statements of the program: after them, all keys are reported. While there is an observer, GRDB also tells
/// how many rows a statement of the store has changed. If they are more than the store knows of, a trigger has changed others,
/// and all keys are reported too. Without an observer, SQLite can remove all rows in one step, and GRDB collects no rows while
/// a savepoint is open.
final class GRDBRecorder: TransactionObserver, Sendable {
  /// The observers of the store.
  let observers = StoreObservers()

  private struct State {
    /// The changes of the store itself.
    var changes = BoundedChanges()

    /// A Boolean value that indicates whether rows were changed whose keys are not known.
    var hasOtherChanges = false

    /// A Boolean value that indicates whether the store is writing at the moment.
    var isOwn = false

    /// The number of rows that the store has written, less those that GRDB has reported, since the store began to write.
    var missingRowCount = 0

    /// The last comparison of the table with its record, or `nil` if it has to be made again.
    var comparison: Comparison?

    /// A Boolean value that indicates whether the store has changed its record in this transaction, which a savepoint
    /// can undo.
    var hasChangedRecord = false
  }

  /// A comparison of the table with its record.
  private struct Comparison {
    /// The version of what the connection saw.
    let version: ContentVersion

    /// The date of the running transaction if it was made there, or nothing has changed since.
    var transaction: Date?
  }

  private let state = Locked(State())
  private let tableName: String

  init(tableName: String) {
    self.tableName = tableName
  }

  // MARK: Comparing the table with its record

  /// Returns whether the table was compared with its record in a transaction, or is unchanged since it was.
  ///
  /// - Parameters:
  ///   - transaction: The date of the running transaction.
  ///   - version: The version of what the connection sees. It is read once for each transaction.
  func isCompared(in transaction: Date, at version: () throws -> ContentVersion) rethrows -> Bool {
    let known = state.withLock { state in
      // GRDB does not report a transaction that SQLite has rolled back after a failed statement. The changes that were recorded
      // in it are reported by the next commit, because those of the running one may be among them.
      if let earlier = state.comparison?.transaction, earlier != transaction { state.comparison = nil }
      return state.comparison
    }
    guard let known else { return false }
    if known.transaction == transaction { return true }
    guard try version() == known.version else { return false }
    state.withLock { $0.comparison?.transaction = transaction }
    return true
  }

  /// Notes that the table was compared with its record.
  ///
  /// - Parameters:
  ///   - transaction: The date of the running transaction.
  ///   - version: The version of what the connection sees.
  ///   - isChanged: A Boolean value that indicates whether the record was changed.
  func noteComparison(in transaction: Date, at version: ContentVersion, isChanged: Bool) {
    state.withLock { state in
      if isChanged { state.hasChangedRecord = true }
      state.comparison = state.hasChangedRecord ? nil : Comparison(version: version, transaction: transaction)
    }
  }

  // MARK: The store's own changes

  /// Notes that the store begins to write.
  func begin(_ changes: @autoclosure () -> BoundedChanges) {
    let changes = observers.isEmpty ? nil : changes()
    state.withLock { state in
      state.isOwn = true
      state.missingRowCount = 0
      if let changes {
        for change in changes.changes { state.changes.append(change) }
      } else {
        // An observer that is added before the commit learns that something has changed.
        state.hasOtherChanges = true
      }
    }
  }

  /// Notes how many rows the statements of the store have changed.
  func noteRows(_ count: Int) {
    state.withLock { $0.missingRowCount += count }
  }

  /// Notes that the store has ended writing.
  ///
  /// - Parameter isUndone: A Boolean value that indicates whether an error has undone what it wrote.
  func end(isUndone: Bool) {
    state.withLock { state in
      if state.isOwn, !isUndone, state.missingRowCount != 0 { state.hasOtherChanges = true }
      state.isOwn = false
    }
  }

  // MARK: TransactionObserver

  /// Notes that a statement may change a table, and returns whether GRDB tells of its rows.
  ///
  /// GRDB calls it for each kind of change, when it prepares a statement that removes rows and before it runs any statement.
  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool {
    switch eventKind.tableName {
    case tableName:
      let isOwn = state.withLock { state in
        if !state.isOwn { state.hasOtherChanges = true }
        return state.isOwn
      }
      return isOwn && !observers.isEmpty
    case StoreCatalog.tableName:
      // By another store on this connection, or by the program. The version of the data does not tell.
      state.withLock { $0.comparison = nil }
      return false
    default:
      return false
    }
  }

  func databaseDidChange(with event: DatabaseEvent) {
    state.withLock { state in
      if state.isOwn {
        state.missingRowCount -= 1
      } else {
        // A change of the store itself, which GRDB has held back until a savepoint of the program ended.
        state.hasOtherChanges = true
      }
    }
  }

  /// Notes a change that GRDB cannot see, such as one of a table without row numbers, of which `notifyChanges` tells.
  func databaseDidChange() {
    state.withLock { $0.hasOtherChanges = true }
  }

  /// Reports that a write may have changed anything.
  func reportUnknown() {
    observers.report(BoundedChanges([.range(.all)]))
  }

  func databaseDidCommit(_ db: Database) {
    let ended = takeState { $0.comparison }
    observers.report(ended.hasOtherChanges ? BoundedChanges([.range(.all)]) : ended.changes)
  }

  func databaseDidRollback(_ db: Database) {
    // The next schema may have the version of the one that was rolled back.
    _ = takeState { _ in nil }
  }

  /// Returns the state, and begins another transaction with a comparison.
  private func takeState(_ comparison: (State) -> Comparison?) -> State {
    state.withLock { state in
      let ended = state
      state = State()
      state.comparison = comparison(ended)
      state.comparison?.transaction = nil
      return ended
    }
  }
}
#endif
