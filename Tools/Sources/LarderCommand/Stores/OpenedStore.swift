import Larder
import LarderExpiry

/// A store that a verb has open: as values that are there now, and as values with their deadlines.
struct OpenedStore {
  /// What lets the entries of a store expire.
  typealias Expiry = ExpiringStore<AnyDataStore<Expiring<JSONText>>, JSONText>

  /// Everything that is stored, with its deadlines, also what has expired.
  let stored: AnyDataStore<Expiring<JSONText>>

  /// The same store where its values expire; `nil` where they do not.
  let expiry: Expiry?

  /// What there is: without what has expired.
  let present: AnyDataStore<JSONText>

  /// Shows a store.
  ///
  /// - Parameters:
  ///   - stored: Everything that is stored.
  ///   - isExpiring: Whether its values expire.
  ///   - expiration: When an entry expires that is written now.
  init(_ stored: AnyDataStore<Expiring<JSONText>>, isExpiring: Bool, expiration: Expiration) {
    self.stored = stored
    if isExpiring {
      let expiry = stored.expiring(expiration)
      self.expiry = expiry
      present = AnyDataStore(expiry)
    } else {
      expiry = nil
      present = AnyDataStore(DeadlinelessStore(stored))
    }
  }

  /// The store as one whose values expire.
  ///
  /// - Throws: ``CommandFailure`` where they do not.
  func expiring() throws -> Expiry {
    if let expiry { return expiry }
    throw CommandFailure.plainValues(in: stored.information.name, advice: "Nothing in it has to be put off or purged.")
  }
}
