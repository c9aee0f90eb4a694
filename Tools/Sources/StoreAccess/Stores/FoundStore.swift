package import Larder
import LarderCompression
package import LarderExpiry
import LarderMetrics

/// An open store before the form of its values is chosen: as JSON, or as they are stored.
package struct FoundStore {
  /// The URL of the store.
  package let url: StoreURL

  /// The name of the codec of the values.
  package let name: CodecName

  /// The codecs for the values, with the dictionaries beside the store.
  package let codecs: ValueCodecs

  package let target: StoreTarget
  package let options: StoreOptions
  package let untyped: any UntypedStore

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - options: The options for opening the store.
  ///   - expires: A Boolean value that indicates whether the values must expire. Defaults to `false`, for both kinds.
  ///     If they must, a new store is created for values that expire, and an existing store of other values is refused.
  ///   - codecName: The codec that the store must have or is created with. Defaults to `nil`, for any codec.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, a layout is given for a store without a table, the values do not
  ///   expire but must, or the store has another codec than the given or the chosen one; the errors of opening the store.
  package init(
    _ target: StoreTarget, options: StoreOptions, expires: Bool = false, codecName: String? = nil
  ) async throws {
    (self.target, self.options) = (target, options)
    url = try StoreURL(target.url)
    let chosenName = target.codec.codec?.rawValue
    let defaultName = try chosenName ?? Stores.provider(for: url, target).codecName
    let keys = try await target.encryption?.valueKeys()
    var newName = CodecName(codecName ?? defaultName)
    if keys != nil, options.createsIfMissing { newName = newName.withEncryption }
    if expires { newName = newName.withDeadlines }
    untyped = try await Stores.open(url, target, options: options, chosenName: chosenName, newName: newName)
    let recorded = CodecName(untyped.codecName)
    // A copy from a newer version raises that of its destination. One from an older version adds values that the program of
    // the destination converts.
    if codecName != nil, let newest = newName.version, let own = recorded.version, newest > own,
      options.access == .readWrite
    {
      name = recorded.withVersion(newest)
    } else {
      name = recorded
    }
    try Stores.checkEncryption(of: name, in: url, with: keys, options: options)
    guard !expires || name.isExpiring else {
      throw CommandFailure.plainValues(
        in: url.description, advice: "Give a new store, or omit --ttl; the store was left unchanged.")
    }
    guard codecName == nil || name.withoutDeadlines == newName.withoutDeadlines.withVersion(name.version)
    else {
      throw CommandFailure(
        .badData, "\(url) was written with the codec \(name), not with \(newName); it was left unchanged",
        advice: "To convert the values, use larder copy with --codec \(name).")
    }
    try Stores.checkCodec(name, of: url, suits: target.codec)
    codecs = try await Stores.codecs(for: name, of: url, with: keys)
  }

  /// A Boolean value that indicates whether the values are encrypted, and the caller gave no keys.
  package var isLocked: Bool { name.isEncrypted && codecs.keys == nil }

  /// Returns the failure of an operation that needs the values, if they are encrypted and the caller gave no keys.
  package var missingKeys: CommandFailure {
    CommandFailure(
      .notPermitted, "the values of \(url) are encrypted", advice: "Give --key-ring and --purpose.")
  }
}

/// An open store whose values are moved as they are stored.
///
/// Deadlines are read, except those inside of an encryption without keys. Everything else is neither decoded nor encoded, so
/// it needs no keys, no dictionaries and no conversion.
package struct StoredStore {
  /// The stored values, with or without deadlines.
  package enum Entries {
    case plain(AnyDataStore<[UInt8]>)
    case expiring(AnyDataStore<Expiring<[UInt8]>>)
  }

  /// The entries, including expired ones.
  package let entries: Entries

  /// The codec of the bytes, without deadlines, and the codec of the store.
  package let bytesName, codecName: CodecName

  private let found: FoundStore

  /// Chooses the stored values of a store.
  ///
  /// - Parameter found: The store.
  /// - Throws: The errors of the store.
  package init(_ found: FoundStore) async throws {
    self.found = found
    codecName = found.name
    let form = found.codecs.storedCodec(of: found.name)
    bytesName = form.bytesName
    switch form.codec {
    case .plain(let codec):
      let store = try await found.untyped.typed(codec: codec)
      entries = .plain(found.target.meter.map { AnyDataStore(store.metered(by: $0)) } ?? store)
    case .expiring(let codec):
      let store = try await found.untyped.typed(codec: codec)
      entries = .expiring(found.target.meter.map { AnyDataStore(store.metered(by: $0)) } ?? store)
    }
  }

  /// Returns whether values of this store can be stored in another one without being decoded.
  ///
  /// - Parameter destination: The other store, with the dictionaries of this one.
  package func fits(_ destination: StoredStore) -> Bool {
    bytesName.withVersion(destination.bytesName.version) == destination.bytesName
  }

  /// Returns whether a place has the dictionaries that the values of this store may need.
  ///
  /// - Parameter destination: The URL of the store at the place, which need not exist.
  /// - Throws: The errors of reading the dictionaries.
  package func hasDictionaries(at destination: String) async throws -> Bool {
    let own = found.codecs.dictionaries.all
    guard bytesName.transforms.contains(.compression), !own.isEmpty else { return true }
    let others = try await Stores.codecs(for: codecName, of: try StoreURL(destination), with: nil).dictionaries
    return own.allSatisfy { others[$0.id] == $0 }
  }

  /// The failure of moving encrypted values to a place without their dictionaries.
  package var missingDictionaries: CommandFailure {
    CommandFailure(
      .usage, "the values of \(found.url) need the dictionaries beside it, which are not beside the destination",
      advice: "Copy the file PATH.dictionaries first, or give --key-ring and --purpose.")
  }

  /// Closes the store.
  package func close() async throws {
    switch entries {
    case .plain(let store): try await store.close()
    case .expiring(let store): try await store.close()
    }
  }
}
