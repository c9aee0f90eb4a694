import Larder
import LarderExpiry
import LarderMetrics
import LarderQueue
import StoreAccess

/// An open store of encoded values, which can be compared, and read even if some of them cannot be decoded.
struct EncodedStore {
  /// The name of the codec of the values.
  let codecName: String

  /// The encoded values, including expired ones.
  let store: AnyDataStore<[UInt8]>

  /// The store as one that reports its changes, or `nil` if it does not.
  let observation: (any ObservableStore<[UInt8]>)?

  /// The store as a queue, or `nil` if it is not a queue.
  let queue: QueueStore<[UInt8]>?

  private let decodeValue: @Sendable ([UInt8], ValueContext) throws -> Expiring<JSONText>

  /// Opens an existing store.
  ///
  /// - Parameters:
  ///   - target: The store. Its meter measures all later operations.
  ///   - access: The access of the store to its files.
  ///   - decrypts: A Boolean value that indicates whether the values are the bytes that are encrypted, not the
  ///     encrypted ones. Defaults to `false`.
  /// - Throws: ``CommandFailure`` if the scheme is unknown, the store has another codec than the chosen one, or the values
  ///   are to be decrypted and cannot be; the errors of opening the store.
  init(_ target: StoreTarget, access: StoreAccess, decrypts: Bool = false) async throws {
    let url = try StoreURL(target.url)
    let untyped = try await Stores.open(
      url, target, options: ConfiguredStacks.options(of: target.url, createsIfMissing: false, access: access),
      chosenName: target.codec.codec?.rawValue)
    let name = untyped.codecName
    try Stores.checkCodec(CodecName(name), of: url, suits: target.codec)
    codecName = name
    let codecs = try await Stores.codecs(for: CodecName(name), of: url, with: target.encryption?.valueKeys())
    if let codec = codecs.expiringCodec(named: name) {
      decodeValue = { try codec.decode($0.span.bytes, context: $1) }
    } else {
      let codec = codecs.codec(named: name)
      decodeValue = { Expiring(try codec.decode($0.span.bytes, context: $1)) }
    }
    // A format that holds JSON as text must know which values are JSON.
    let codec =
      decrypts
      ? try codecs.decryptingCodec(named: name, of: url)
      : BytesCodec(name: name, format: codecs.codec(named: name).format)
    queue = try (untyped as? UntypedQueue)?.queue(codec: codec)
    let opened = if let queue { AnyDataStore(queue) } else { try await untyped.typed(codec: codec) }
    observation = opened.observation
    store = target.meter.map { AnyDataStore(opened.metered(by: $0)) } ?? opened
  }

  /// Returns the value of an entry, with its deadline.
  ///
  /// - Parameter entry: The entry.
  /// - Throws: The errors of the codec.
  func value(of entry: StoreEntry<[UInt8]>) throws -> Expiring<JSONText> {
    try decodeValue(entry.value, ValueContext(key: entry.key))
  }
}
