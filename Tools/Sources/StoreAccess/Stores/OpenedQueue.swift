package import Larder
import LarderMetrics
import LarderQueue
import LarderStoreQueue

/// A queue to open.
package struct QueueTarget: Sendable {
  /// The queue, or the store that it is in.
  package let store: StoreTarget
  /// The prefix of its keys in that store; `nil` for a store that is a queue itself.
  package let prefix: String?
  /// The codec of the items of a new queue in that store; `nil` for JSON, or for a store that is a queue itself.
  package let itemCodec: QueueItemCodec?

  package init(store: StoreTarget, prefix: String?, itemCodec: QueueItemCodec?) {
    (self.store, self.prefix, self.itemCodec) = (store, prefix, itemCodec)
  }
}

/// A codec of the items of a new queue in another store.
package enum QueueItemCodec: String, CaseIterable {
  case json
  case cbor
}

/// An open queue of JSON values, whose deadlines are ignored.
package struct OpenedQueue {
  /// The queue.
  package let queue: any DurableQueue<JSONText>

  /// The codec of the items.
  package let codec: any Codec<JSONText>

  /// The observation that reports dead letters, or `nil` if the queue reports them itself.
  private let deadLetters: StoreObservation?

  /// Opens a queue, which is a store itself or in a store of bytes.
  ///
  /// - Parameters:
  ///   - target: The queue. Its meter measures all later operations.
  ///   - options: The options for opening the store.
  /// - Throws: ``CommandFailure`` if a prefix is missing or not allowed, the store does not hold bytes, or there is no
  ///   queue with the prefix; the errors of opening the store and the queue.
  package init(_ target: QueueTarget, options: StoreOptions) async throws {
    let url = try StoreURL(target.store.url)
    let keys = try await target.store.encryption?.valueKeys()
    let opened: any DurableQueue<JSONText>
    let providers: [any StoreProvider] = [Stores.queueProvider, Stores.postgresQueueProvider]
    if let provider = providers.first(where: { $0.scheme == url.scheme }) {
      guard target.prefix == nil, target.itemCodec == nil else {
        throw CommandFailure(
          .usage, "\(url) is a queue itself, with a codec of its own", advice: "Omit the prefix and the codec.")
      }
      (opened, codec) = try await Self.queue(at: url, of: provider, keys, options)
      deadLetters =
        provider is ReportingQueueProvider
        ? nil : opened.observeDeadLetters { Diagnostics.writeLine("larder: \($0.key): \($0)") }
    } else {
      guard let prefix = target.prefix else {
        throw CommandFailure(
          .usage, "\(url) is not a queue", advice: "Give the prefix of a queue in it, as in --prefix jobs/.")
      }
      let bytes = try await Stores.bytes(in: target.store, for: "a queue in a store", options: options)
      let recorded = try await bytes.codecName(ofQueue: StoreKey(prefix)).map { CodecName($0) }
      if let recorded, let chosen = target.itemCodec, recorded.base != chosen.rawValue {
        throw CommandFailure(
          .badData, "the items of \(prefix) in \(url) have the codec \(recorded), not \(chosen); it was left unchanged",
          advice: "Omit --codec, which is for new queues.")
      }
      let name = recorded ?? CodecName((target.itemCodec ?? .json).rawValue)
      codec = try await Stores.codecs(for: name, of: url, with: nil).codec(named: "\(name)")
      try await Self.checkQueue(with: StoreKey(prefix), in: bytes, url, options)
      opened = try await Self.queue(in: bytes, prefix: StoreKey(prefix), codec: codec)
      deadLetters = opened.observeDeadLetters { Diagnostics.writeLine("larder: \($0.key): \($0)") }
    }
    queue = target.store.meter.map { Self.metered(opened, by: $0) } ?? opened
  }

  private static func queue(
    at url: StoreURL, of provider: some StoreProvider, _ keys: ValueKeys?, _ options: StoreOptions
  ) async throws -> (any DurableQueue<JSONText>, any Codec<JSONText>) {
    let newName = CodecName(provider.codecName)
    let untyped = try await provider.open(
      url, options: options, newCodecName: "\(keys == nil ? newName : newName.withEncryption)")
    let name = CodecName(untyped.codecName)
    try Stores.checkEncryption(of: name, in: url, with: keys, options: options)
    let codec = try await Stores.codecs(for: name, of: url, with: keys).codec(named: untyped.codecName)
    let store = try await untyped.typed(codec: codec)
    try await Stores.checkKeys(keys, fit: store, options: options)
    guard let queue = store.queue else { throw CommandFailure(.usage, "\(url) is not a queue") }
    return (queue, codec)
  }

  /// Checks that a queue with a prefix exists, or can be created without taking over other entries.
  ///
  /// - Throws: ``CommandFailure``; the errors of the store.
  private static func checkQueue(
    with prefix: StoreKey, in bytes: AnyDataStore<[UInt8]>, _ url: StoreURL, _ options: StoreOptions
  ) async throws {
    // Every queue has the record of its format; see the article "The format of StoreQueue".
    guard try await bytes.value(forKey: StoreKey(bytes: prefix.bytes + Array("f".utf8))) == nil else { return }
    guard try await bytes.keys(in: .prefix(prefix), limit: 1, order: .ascending).isEmpty else {
      throw CommandFailure(
        .usage, "the keys of \(url) that begin with \(prefix) are not those of a queue", advice: "Give another prefix.")
    }
    guard options.createsIfMissing else {
      throw CommandFailure(
        .noInput, "\(url) has no queue with the prefix \(prefix)",
        advice: "Check the prefix. Only queue enqueue and queue move create a queue.")
    }
  }

  private static func queue(
    in bytes: AnyDataStore<[UInt8]>, prefix: StoreKey, codec: some Codec<JSONText>
  ) async throws -> any DurableQueue<JSONText> {
    try await bytes.queue(of: JSONText.self, prefix: prefix, codec: codec)
  }

  private static func metered(
    _ queue: some DurableQueue<JSONText>, by meter: StoreMeter
  ) -> any DurableQueue<JSONText> {
    queue.metered(by: meter)
  }
}
