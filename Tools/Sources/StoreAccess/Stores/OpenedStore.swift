package import Larder
package import LarderExpiry
import LarderMetrics

/// An open store of JSON values, which may expire.
package struct OpenedStore {
  /// The decorator through which entries expire.
  package typealias Expiry = ExpiringStore<AnyDataStore<Expiring<JSONText>>, JSONText>

  /// The entries that have not expired.
  package let present: AnyDataStore<JSONText>

  /// The store as one whose values expire, or `nil` if they do not.
  ///
  /// Its base has all entries with their deadlines, including expired ones.
  package let expiry: Expiry?

  /// The name of the codec of the values.
  package var codecName: String { codec.name }

  private let codec: any Codec<JSONText>

  /// The failure of an operation that needs the values, if they are encrypted and the caller gave no keys.
  private let missingKeys: CommandFailure?

  /// Opens a store as what it is: with the codec that it was written with, and with deadlines if its values have them.
  ///
  /// - Parameters:
  ///   - found: The store. Its meter measures all later operations.
  ///   - timeToLive: The time to live of the entries that are written. Defaults to `nil`, for never.
  /// - Throws: ``StoreError`` if the store is to be written with other keys than its values; the errors of the store.
  package init(_ found: FoundStore, timeToLive: TimeToLive? = nil) async throws {
    let codecs = found.codecs
    codec = codecs.codec(named: "\(found.name)")
    missingKeys = found.isLocked ? found.missingKeys : nil
    if let codec = codecs.expiringCodec(named: "\(found.name)") {
      let typed = try await found.untyped.typed(codec: codec)
      try await Stores.checkKeys(codecs.keys, fit: typed, options: found.options)
      let stored = OpenedStore.metered(typed, by: found.target.meter)
      let expiry = stored.expiring(timeToLive ?? .never)
      (self.expiry, present) = (expiry, AnyDataStore(expiry))
    } else {
      expiry = nil
      let typed = try await found.untyped.typed(codec: codec)
      try await Stores.checkKeys(codecs.keys, fit: typed, options: found.options)
      present = OpenedStore.metered(typed, by: found.target.meter)
    }
  }

  private static func metered<Value>(_ store: AnyDataStore<Value>, by meter: StoreMeter?) -> AnyDataStore<Value> {
    meter.map { AnyDataStore(store.metered(by: $0)) } ?? store
  }

  /// Refuses encrypted values without their keys, which would all look damaged.
  ///
  /// - Throws: ``CommandFailure``.
  package func checkNotLocked() throws {
    if let missingKeys { throw missingKeys }
  }

  /// Returns the number of entries in a range, including expired ones.
  package func storedCount(in range: KeyRange) async throws -> Int {
    if let expiry { return try await expiry.base.count(in: range) }
    return try await present.count(in: range)
  }

  /// Returns the number of values of each version, without moving sliding deadlines.
  ///
  /// - Returns: The versions with their numbers, including expired entries, and the number of values whose version
  ///   cannot be read. `nil` if the values have no versions.
  /// - Throws: The store's errors.
  package func versionCounts() async throws -> VersionCounts? {
    guard CodecName(codecName).version != nil else { return nil }
    guard let expiry else { return try await VersionCounts(of: present) { $0 } }
    return try await VersionCounts(of: expiry.base) { $0.value }
  }

  /// Returns the value of a key without moving a sliding deadline.
  package func peekValue(forKey key: StoreKey) async throws -> JSONText? {
    if let expiry { return try await expiry.peekValue(forKey: key) }
    return try await present.value(forKey: key)
  }

  /// Checks whether the store can hold a value, before a whole batch fails because of it.
  ///
  /// - Parameter value: The value.
  /// - Throws: ``BadLine`` if the store cannot hold the value.
  package func check(_ value: JSONText) throws(BadLine) {
    var bytes: [UInt8] = []
    do {
      try codec.encode(value, into: &bytes)
    } catch let error as JSONSyntaxError {
      // The column in the error is one of the value, not of the line.
      throw BadLine("its value cannot be stored: \(error.message)")
    } catch {
      throw BadLine("its value cannot be stored: \(error)")
    }
    if let maximum = present.information.maximumValueSize, bytes.count > maximum {
      throw BadLine("its value has \(bytes.count) bytes; the maximum of this store is \(maximum)")
    }
  }

  /// Returns the store as one whose values expire.
  ///
  /// - Throws: ``CommandFailure`` if they do not.
  package func expiring() throws -> Expiry {
    if let expiry { return expiry }
    throw CommandFailure.plainValues(
      in: present.information.name, advice: "It has no deadlines to extend and nothing to purge.")
  }

  /// Extends the deadline of an entry, or leaves a later one as it is.
  ///
  /// - Parameters:
  ///   - key: The key of the entry. It may be missing.
  ///   - timeToLive: The time to live from now on; `nil` for the window of an entry with a sliding deadline.
  /// - Throws: ``CommandFailure`` if the values do not expire, or if there is neither a time nor a window; the store's
  ///   errors.
  package func extendDeadline(of key: StoreKey, by timeToLive: Duration?) async throws {
    let expiry = try expiring()
    guard case .after(let remaining) = try await expiry.remainingTime(forKey: key) else { return }
    let window = try await expiry.base.value(forKey: key)?.deadline?.window
    guard let duration = timeToLive ?? window else {
      throw CommandFailure(
        .usage, "the deadline of this entry does not slide, so --slide needs a time",
        advice: "Give one, as in --slide --ttl 30m.")
    }
    // A deadline that slides still slides.
    let timeToLive: TimeToLive = window == nil ? .after(duration) : .sliding(duration)
    if duration > remaining { try await expiry.touch(key, timeToLive: timeToLive) }
  }
}
