#if GRDB
import GRDB
import Larder
import LarderSQLiteFormat
import Synchronization

/// The type of the values with which a store of this process has a table open, until it is released.
final class GRDBClaim: Sendable {
  private struct Table: Hashable {
    let writer: ObjectIdentifier
    let name: String
  }

  private static let claims = Locked<[Table: TypeClaim]>([:])

  private let table: Table
  private let isUntyped: Bool
  private let isReleased = Atomic(false)

  /// Claims a table of a database, which must not be deinitialized before the claim.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if this process has it open with another type.
  init(of name: String, in writer: some DatabaseWriter, for type: Any.Type, store: String) throws {
    let table = Table(writer: ObjectIdentifier(writer), name: StoreTable.folded(name))
    isUntyped = TypeClaim.isUntyped(type)
    if !isUntyped {
      try GRDBClaim.claims.withLock { try $0[table, default: TypeClaim()].claim(for: type, store: store) }
    }
    // Last, because an error in a complete object would release the claim of another.
    self.table = table
  }

  deinit {
    release()
  }

  /// Releases the claim.
  ///
  /// - Returns: A Boolean value that indicates whether this is the first call.
  @discardableResult func release() -> Bool {
    guard !isReleased.exchange(true, ordering: .relaxed) else { return false }
    guard !isUntyped else { return true }
    GRDBClaim.claims.withLock { claims in
      claims[table]?.release()
      if claims[table]?.isFree == true { claims[table] = nil }
    }
    return true
  }
}
#endif
