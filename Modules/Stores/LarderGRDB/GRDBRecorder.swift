#if GRDB
import GRDB
import Larder
import LarderSQLiteFormat

/// Records the changes of a table in the running transaction, and reports them to the observers of a store once it is
/// committed.
///
/// GRDB tells how many rows a statement has changed, but not their keys. The store tells the keys of its own changes. If
/// more rows were changed than the store knows of, such as by a trigger or by SQL of the program, all keys are reported.
final class GRDBRecorder: TransactionObserver, Sendable {
  /// The observers of the store.
  let observers = StoreObservers()

  private struct State {
    /// The changes of the store itself.
    var changes = BoundedChanges()

    /// Whether rows were changed whose keys are not known.
    var hasOtherChanges = false

    /// Whether the store is writing at the moment.
    var isOwn = false

    /// The number of rows that were changed since the store began to write.
    var rowCount = 0

    /// The last comparison of the table with its record, or `nil` if it has to be made again.
    var confirmation: Confirmation?

    /// Whether the store has changed its record in this transaction, which a savepoint can undo.
    var hasChangedRecord = false
  }

  /// A comparison of the table with its record.
  struct Confirmation: Sendable {
    let version: ContentVersion

    /// Whether a trigger, an index or a constraint can refuse a row.
    let canRefuseRows: Bool
  }

  private let state = Locked(State())
  private let tableName: String

  init(tableName: String) {
    self.tableName = tableName
  }

  // MARK: The store's own changes

  /// Returns the last comparison of the table with its record, unless something may have changed since.
  func confirmation(at version: ContentVersion) -> Confirmation? {
    state.withLock { $0.confirmation?.version == version ? $0.confirmation : nil }
  }

  /// Notes that the table was compared with its record.
  ///
  /// - Parameters:
  ///   - confirmation: The comparison.
  ///   - isChanged: Whether the record was changed.
  func confirm(_ confirmation: Confirmation, isChanged: Bool) {
    state.withLock { state in
      if isChanged { state.hasChangedRecord = true }
      state.confirmation = state.hasChangedRecord ? nil : confirmation
    }
  }

  /// Notes that the store begins to write.
  func begin(_ changes: @autoclosure () -> BoundedChanges) {
    let changes = observers.isEmpty ? nil : changes()
    state.withLock { state in
      state.isOwn = true
      state.rowCount = 0
      if let changes {
        for change in changes.changes { state.changes.append(change) }
      } else {
        // An observer that is added before the commit learns that something has changed.
        state.hasOtherChanges = true
      }
    }
  }

  /// Notes how many rows the statements of the store have changed.
  func verify(rowCount: Int) {
    state.withLock { if $0.rowCount != rowCount { $0.hasOtherChanges = true } }
  }

  /// Notes that the store has ended writing.
  func end() {
    state.withLock { $0.isOwn = false }
  }

  // MARK: TransactionObserver

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool {
    [tableName, StoreCatalog.tableName].contains(eventKind.tableName)
  }

  func databaseDidChange(with event: DatabaseEvent) {
    state.withLock { state in
      if event.tableName == StoreCatalog.tableName {
        // By another store on this connection, of which the version of the data does not tell.
        state.confirmation = nil
      } else if state.isOwn {
        state.rowCount += 1
      } else {
        // Also changes of the store itself, if GRDB holds them back until a savepoint ends.
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
    let ended = takeState()
    observers.report(ended.hasOtherChanges ? BoundedChanges([.range(.all)]) : ended.changes)
  }

  func databaseDidRollback(_ db: Database) {
    _ = takeState()
  }

  /// Returns the state, and begins another transaction.
  private func takeState() -> State {
    state.withLock { state in
      let ended = state
      state = State()
      // A transaction that the store itself began is committed while it writes.
      state.isOwn = ended.isOwn
      state.confirmation = ended.confirmation
      return ended
    }
  }
}
#endif
