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

  /// The name of the codec of its values; `nil` where it keeps no bytes.
  var codecName: String? { codec?.name }

  private let codec: (any Codec<Expiring<JSONText>>)?

  /// Shows a store.
  ///
  /// - Parameters:
  ///   - stored: Everything that is stored.
  ///   - codec: What turns its values into bytes; `nil` where it keeps no bytes.
  ///   - isExpiring: Whether its values expire.
  ///   - expiration: When an entry expires that is written now.
  init(
    _ stored: AnyDataStore<Expiring<JSONText>>, codec: (any Codec<Expiring<JSONText>>)?, isExpiring: Bool,
    expiration: Expiration
  ) {
    self.stored = stored
    self.codec = codec
    if isExpiring {
      let expiry = stored.expiring(expiration)
      self.expiry = expiry
      present = AnyDataStore(expiry)
    } else {
      expiry = nil
      present = AnyDataStore(DeadlinelessStore(stored))
    }
  }

  /// Finds out whether the store can keep a value, before a whole batch fails for it.
  ///
  /// - Parameter value: The value.
  /// - Throws: ``BadLine`` where it cannot.
  func check(_ value: JSONText) throws(BadLine) {
    var bytes: [UInt8] = []
    do {
      try codec?.encode(Expiring(value), into: &bytes)
    } catch let error as JSONSyntaxError {
      // Its place is one in the value, not in the line.
      throw BadLine("the store cannot keep its value: \(error.message)")
    } catch {
      throw BadLine("the store cannot keep its value: \(error)")
    }
    if let maximum = stored.information.maximumValueSize, bytes.count > maximum {
      throw BadLine("its value has \(bytes.count) bytes, the most that this store takes is \(maximum)")
    }
  }

  /// The store as one whose values expire.
  ///
  /// - Throws: ``CommandFailure`` where they do not.
  func expiring() throws -> Expiry {
    if let expiry { return expiry }
    throw CommandFailure.plainValues(in: stored.information.name, advice: "Nothing in it has to be put off or purged.")
  }

  /// Puts off the deadline of an entry, unless the entry lives on for longer anyway.
  ///
  /// - Parameters:
  ///   - key: The key of the entry; it may be missing.
  ///   - lifetime: How long the entry shall live from now on; `nil` for the window of one that slides.
  /// - Throws: ``CommandFailure`` where the values do not expire, or where nothing says for how long; what the store throws.
  func putOffDeadline(of key: StoreKey, by lifetime: Duration?) async throws {
    let expiry = try expiring()
    guard case .limited(let remaining) = try await expiry.remainingTime(forKey: key) else { return }
    let window = try await stored.value(forKey: key)?.deadline?.window
    guard let lifetime = lifetime ?? window else {
      throw CommandFailure(
        .usage, "the deadline of this entry does not slide, so nothing says for how long to put it off",
        advice: "Give the time, as in --slide --ttl 30m.")
    }
    if lifetime > remaining { try await expiry.touch(key, lifetime: .limited(lifetime)) }
  }
}
