import Larder
import LarderExpiry
import LarderHTTPCache
import LarderInspector
import LarderPostgres
import StoreAccess

/// The stores and queues that one URL names.
struct InspectedTarget {
  private(set) var stores: [InspectedStore] = []
  /// The stores to close at the end.
  private(set) var opened: [any DataStore] = []

  /// Opens a store, and the queues in it.
  ///
  /// - Parameters:
  ///   - target: The store.
  ///   - queues: The prefixes of queues in the store.
  ///   - httpCaches: The prefixes of HTTP caches in the store.
  ///   - httpMode: The kind of these caches, which decides on freshness.
  ///   - isWritable: A Boolean value that indicates whether the store is opened for writing.
  ///   - salvage: The new store to which the pages can copy the readable entries, or `nil` for none.
  /// - Throws: ``CommandFailure``; the errors of opening the store.
  init(
    _ target: StoreTarget, queues: [String], httpCaches: [String], httpMode: HTTPCacheMode, isWritable: Bool,
    salvage: StoreTarget?
  ) async throws {
    let options = try ConfiguredStacks.options(
      of: target.url, createsIfMissing: false, access: isWritable ? .readWrite : .readOnly)
    for prefix in queues {
      let queue = try await OpenedQueue(QueueTarget(store: target, prefix: prefix, itemCodec: nil), options: options)
      add("\(target.url) \(prefix)", queue.queue, codecName: queue.codec.name)
    }
    for prefix in httpCaches {
      let store = try await Stores.bytes(in: target, for: "an HTTP cache", options: options)
      var configuration = HTTPCacheConfiguration(mode: httpMode)
      configuration.prefix = StoreKey(prefix)
      // The tool does not know the settings of the program that uses the cache, which may be slow to commit.
      configuration.storeTimeLimit = .seconds(86_400)
      guard try await HTTPCacheInspector(store, configuration: configuration).isPresent() else {
        throw CommandFailure(
          .noInput, "\(target.url) has no HTTP cache with the prefix \(prefix)",
          advice: "Check --http-cache; a program that uses the cache creates it.")
      }
      stores.append(try InspectedStore("\(target.url) \(prefix)", store, httpCacheConfiguration: configuration))
      opened.append(store)
    }
    guard queues.isEmpty, httpCaches.isEmpty else { return }
    if [Stores.queueProvider.scheme, Stores.postgresQueueProvider.scheme].contains(try StoreURL(target.url).scheme) {
      guard salvage == nil else {
        throw CommandFailure(
          .usage, "\(target.url) is a queue, whose items are not salvaged", advice: "Omit --salvage-to.")
      }
      let queue = try await OpenedQueue(QueueTarget(store: target, prefix: nil, itemCodec: nil), options: options)
      add(target.url, queue.queue, codecName: queue.codec.name)
    } else {
      let store = try await OpenedStore(FoundStore(target, options: options))
      if salvage != nil { try store.checkNotLocked() }
      add(target.url, store.present, codecName: store.codecName)
      if let salvage { try await add(salvage, for: store) }
    }
  }

  /// Creates the store to which the entries of the only store can be copied.
  private mutating func add(_ target: StoreTarget, for damaged: OpenedStore) async throws {
    let options = try ConfiguredStacks.options(of: target.url, createsIfMissing: true, access: .readWrite)
    let new = try await OpenedStore(
      FoundStore(target, options: options, expires: damaged.expiry != nil, codecName: damaged.codecName))
    opened.append(new.present)
    guard try await new.storedCount(in: .all) == 0 else { throw CommandFailure.hasEntries(target.url) }
    let newExpiry = try damaged.expiry.map { _ in try new.expiring() }
    stores = try stores.map { store in
      if let expiry = damaged.expiry, let newExpiry { return try store.salvaging(expiry.base, into: newExpiry.base) }
      return try store.salvaging(damaged.present, into: new.present)
    }
  }

  private mutating func add(_ name: String, _ store: some DataStore<JSONText>, codecName: String) {
    stores.append(InspectedStore(name, store, codec: ShownCodec(codecName: codecName)))
    opened.append(store)
  }
}

/// The form in which the pages show values that the tool reads as JSON: JSON, or bytes if they are no JSON.
struct ShownCodec: Codec {
  let codecName: String

  var name: String { "shown" }

  var format: CodecFormat { CodecName(codecName).isReadable ? .json : .binary }

  func encode(_ value: JSONText, into bytes: inout [UInt8], context: ValueContext) throws {
    guard format == .json else {
      bytes += try RawValue.bytes(of: value, codecName: codecName)
      return
    }
    // Byte strings, such as images. Those that are text stay JSON, so that they cannot be confused with strings.
    let content = RawValue.hasByteStrings(codecName) ? try RawValue.bytes(of: value, codecName: codecName) : value.bytes
    bytes += String(validating: content, as: UTF8.self) == nil ? content : value.bytes
  }

  func decode(_ bytes: RawSpan, context: ValueContext) throws -> JSONText {
    let bytes = bytes.withUnsafeBytes { Array($0) }
    if format == .json, String(validating: bytes, as: UTF8.self) != nil { return try JSONText(bytes) }
    return try RawValue.value(of: bytes, codecName: codecName)
  }
}
