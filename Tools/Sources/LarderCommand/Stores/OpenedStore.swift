import Larder
import LarderExpiry
import LarderMetrics

/// An open store of JSON values, which may expire.
struct OpenedStore {
  /// The decorator through which entries expire.
  typealias Expiry = ExpiringStore<AnyDataStore<Expiring<JSONText>>, JSONText>

  /// The entries that have not expired.
  let present: AnyDataStore<JSONText>

  /// The store as one whose values expire, or `nil` if they do not.
  ///
  /// Its base has all entries with their deadlines, including expired ones.
  let expiry: Expiry?

  /// The name of the codec of the values.
  var codecName: String { codec.name }

  private let codec: any Codec<JSONText>

  /// Whether the values are encrypted, and the caller gave no keys.
  private let isLocked: Bool

  /// Opens a store as what it is: with the codec that it was written with, and with deadlines if its values have them.
  ///
  /// - Parameters:
  ///   - target: The store. Its meter measures all later operations.
  ///   - options: The options for opening the store.
  ///   - timeToLive: The time to live of the entries that are written; defaults to `nil`. If it is given, a new store is
  ///     created for values that expire, and an existing store of other values is refused.
  ///   - codecName: The codec that the store must have or is created with; defaults to `nil`, for any codec.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, a layout is given for a store without a table, the values do not expire but must, the store has another
  ///   codec, or it is to be written with other keys than its values; the errors of opening the store.
  init(
    _ target: StoreTarget, options: StoreOptions, timeToLive: TimeToLive? = nil, codecName: String? = nil
  ) async throws {
    let url = try StoreURL(target.url)
    let provider = try Stores.provider(for: url, layout: target.layout)
    let keys = try await target.encryption?.valueKeys()
    var newName = CodecName(codecName ?? provider.codecName)
    if keys != nil, options.createsIfMissing { newName = newName.withEncryption }
    let untyped = try await provider.open(
      url, options: options, newCodecName: "\(timeToLive == nil ? newName : newName.withDeadlines)")
    let name = CodecName(untyped.codecName)
    try Stores.checkEncryption(of: name, in: url, with: keys, options: options)
    guard timeToLive == nil || name.isExpiring else {
      throw CommandFailure.plainValues(
        in: url.description, advice: "Give a new store, or omit --ttl; the store was left unchanged.")
    }
    guard codecName == nil || name.withoutDeadlines == newName.withoutDeadlines else {
      throw CommandFailure(
        .badData, "\(url) was written with the codec \(name), not with \(newName); it was left unchanged",
        advice: "To convert the values, give --codec \(name).")
    }
    let codecs = try await Stores.codecs(for: name, of: url, with: keys)
    codec = codecs.codec(named: untyped.codecName)
    isLocked = name.isEncrypted && keys == nil
    if let codec = codecs.expiringCodec(named: untyped.codecName) {
      let typed = try await untyped.typed(codec: codec)
      try await Stores.checkKeys(keys, fit: typed, options: options)
      let stored = OpenedStore.metered(typed, by: target.meter)
      let expiry = stored.expiring(timeToLive ?? .unlimited)
      (self.expiry, present) = (expiry, AnyDataStore(expiry))
    } else {
      expiry = nil
      let typed = try await untyped.typed(codec: codec)
      try await Stores.checkKeys(keys, fit: typed, options: options)
      present = OpenedStore.metered(typed, by: target.meter)
    }
  }

  private static func metered<Value>(_ store: AnyDataStore<Value>, by meter: StoreMeter?) -> AnyDataStore<Value> {
    meter.map { AnyDataStore(store.metered(by: $0)) } ?? store
  }

  /// Refuses encrypted values without their keys, which would all look damaged.
  ///
  /// - Throws: ``CommandFailure``.
  func checkNotLocked() throws {
    guard isLocked else { return }
    throw CommandFailure(
      .notPermitted, "the values of \(present.information.name) are encrypted",
      advice: "Give --key-ring and --purpose.")
  }

  /// Returns the number of entries in a range, including expired ones.
  func storedCount(in range: KeyRange) async throws -> Int {
    if let expiry { return try await expiry.base.count(in: range) }
    return try await present.count(in: range)
  }

  /// Returns the number of values of each version, without moving sliding deadlines.
  ///
  /// - Returns: The versions with their numbers, including expired entries, and the number of values whose version
  ///   cannot be read. `nil` if the values have no versions.
  /// - Throws: The store's errors.
  func versionCounts() async throws -> VersionCounts? {
    guard CodecName(codecName).isVersioned else { return nil }
    guard let expiry else { return try await VersionCounts(of: present) { $0 } }
    return try await VersionCounts(of: expiry.base) { $0.value }
  }

  /// Returns the value of a key without moving a sliding deadline.
  func peekValue(forKey key: StoreKey) async throws -> JSONText? {
    if let expiry { return try await expiry.peekValue(forKey: key) }
    return try await present.value(forKey: key)
  }

  /// Checks whether the store can hold a value, before a whole batch fails because of it.
  ///
  /// - Parameter value: The value.
  /// - Throws: ``BadLine`` if the store cannot hold the value.
  func check(_ value: JSONText) throws(BadLine) {
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
  func expiring() throws -> Expiry {
    if let expiry { return expiry }
    throw CommandFailure.plainValues(
      in: present.information.name, advice: "It has no deadlines to extend and nothing to purge.")
  }

  /// Extends the deadline of an entry, or leaves a later one as it is.
  ///
  /// - Parameters:
  ///   - key: The key of the entry, which may be missing.
  ///   - timeToLive: The time to live from now on; `nil` for the window of an entry with a sliding deadline.
  /// - Throws: ``CommandFailure`` if the values do not expire, or if there is neither a time nor a window; the store's
  ///   errors.
  func extendDeadline(of key: StoreKey, by timeToLive: Duration?) async throws {
    let expiry = try expiring()
    guard case .limited(let remaining) = try await expiry.remainingTime(forKey: key) else { return }
    let window = try await expiry.base.value(forKey: key)?.deadline?.window
    guard let duration = timeToLive ?? window else {
      throw CommandFailure(
        .usage, "the deadline of this entry does not slide, so --slide needs a time",
        advice: "Give one, as in --slide --ttl 30m.")
    }
    // A deadline that slides still slides.
    let timeToLive: TimeToLive = window == nil ? .limited(duration) : .sliding(duration)
    if duration > remaining { try await expiry.touch(key, timeToLive: timeToLive) }
  }
}
