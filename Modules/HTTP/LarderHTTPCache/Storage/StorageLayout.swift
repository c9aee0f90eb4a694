#if HTTPCache
import HTTPCachingRules
import Larder

/// The keys of a cache's entries in its store of bytes.
///
/// The article "The format of HTTP caches" describes them.
struct StorageLayout: Sendable {
  /// The number of bytes of every chunk but the last one of a body.
  ///
  /// It is less than 64 KiB, so a chunk fits into 16 pages of 4 KiB together with what a store, a checksum or an
  /// encryption adds.
  static let chunkLength = 65_408

  /// The maximum number of chunks that a body adds in one commit, and the number with which it gets its mark.
  static let batchLength = 16

  /// The number of bytes of the partition's hash and of the identifier in the key of a response.
  private static let partitionLength = 8
  private static let identifierLength = 8

  /// The shortest limit for the part of a key that is a shortened URL; see `StoreKey.init(shortening:limit:)`.
  private static let shortestURLLimit = 65

  /// The prefix of all keys.
  let prefix: StoreKey

  let totalsKey: StoreKey

  /// The ranges of all entries, and of the entries of each kind.
  let everything: KeyRange
  let responses: KeyRange
  let uses: KeyRange
  let marks: KeyRange
  let retired: KeyRange
  let bodies: KeyRange
  let invalidations: KeyRange

  /// The maximum length of the part of a response's key that is the URL.
  let urlLimit: Int

  /// Creates the layout.
  ///
  /// - Returns: `nil` if the keys of the store are too short.
  init?(prefix: StoreKey, maximumKeyLength: Int) {
    self.prefix = prefix
    totalsKey = prefix + "t"
    everything = .prefix(prefix)
    responses = .prefix(prefix + "r")
    uses = .prefix(prefix + "o")
    marks = .prefix(prefix + "m")
    retired = .prefix(prefix + "x")
    bodies = .prefix(prefix + "b")
    invalidations = .prefix(prefix + "i")
    urlLimit = maximumKeyLength - prefix.count - 2 - Self.partitionLength - Self.identifierLength
    if urlLimit < Self.shortestURLLimit { return nil }
  }

  // MARK: Responses

  /// Returns the key of a response.
  ///
  /// - Parameter identifier: A random number.
  func responseKey(url: String, partition: [UInt8], identifier: UInt64) -> StoreKey {
    variantsPrefix(url: url, partition: partition) + StoreKey(bytes: identifier.bigEndianBytes)
  }

  /// Returns the range of the responses for a URL in a partition.
  ///
  /// It may also have responses for other URLs, because a key has only a hash of a long URL and of the partition.
  func variants(url: String, partition: [UInt8]) -> KeyRange {
    .prefix(variantsPrefix(url: url, partition: partition))
  }

  /// Returns the range of the responses for a URL in all partitions, and perhaps of further ones.
  func responses(url: String) -> KeyRange { .prefix(urlPrefix(url)) }

  /// Returns the range of all responses whose URL begins with a prefix, and perhaps of further ones.
  func responses(urlPrefix: [UInt8]) -> KeyRange {
    // A shortened URL keeps at least this many of its first bytes; see `StoreKey.init(shortening:limit:)`, which cuts
    // between two Unicode scalars.
    let kept = max(0, urlLimit - Self.shortestURLLimit - 3)
    return .prefix(StoreKey(bytes: prefix.bytes + [UInt8(ascii: "r")] + urlPrefix.prefix(kept)))
  }

  private func urlPrefix(_ url: String) -> StoreKey {
    StoreKey(
      bytes: prefix.bytes + [UInt8(ascii: "r")] + StoreKey(shortening: url, limit: urlLimit).bytes + [0])
  }

  private func variantsPrefix(url: String, partition: [UInt8]) -> StoreKey {
    let hash =
      partition.isEmpty
      ? [UInt8](repeating: 0, count: Self.partitionLength)
      : Array(partition.withUnsafeBytes { KeyDigest.digest(of: $0) }.prefix(Self.partitionLength))
    return urlPrefix(url) + StoreKey(bytes: hash)
  }

  /// Returns the key of a response's place in the order of use.
  ///
  /// The identifier at the end of the response's key tells responses with the same place apart.
  func useKey(of responseKey: StoreKey, at place: UInt64) -> StoreKey {
    StoreKey(
      bytes: prefix.bytes + [UInt8(ascii: "o")] + place.bigEndianBytes
        + responseKey.bytes.suffix(Self.identifierLength))
  }

  // MARK: Bodies

  func markKey(of body: BodyIdentifier) -> StoreKey {
    StoreKey(bytes: prefix.bytes + [UInt8(ascii: "m")] + body.bytes)
  }

  /// Returns the body that a mark belongs to, or `nil` if the key is not that of a mark.
  func body(ofMark key: StoreKey) -> BodyIdentifier? {
    BodyIdentifier(key.bytes.dropFirst(prefix.count + 1))
  }

  func retiredKey(of body: BodyIdentifier, at microseconds: Int64) -> StoreKey {
    StoreKey(
      bytes: prefix.bytes + [UInt8(ascii: "x")] + UInt64(bitPattern: microseconds).bigEndianBytes + body.bytes)
  }

  /// Returns a retired body and the time of its retirement, or `nil` if the key is not that of a retired body.
  func retired(_ key: StoreKey) -> (body: BodyIdentifier, microseconds: Int64)? {
    let bytes = key.bytes.dropFirst(prefix.count + 1)
    guard let body = BodyIdentifier(bytes.dropFirst(8)) else { return nil }
    return (body, Int64(bitPattern: UInt64(bigEndianBytes: bytes.prefix(8))))
  }

  /// Returns the range of the chunks of a body.
  func chunks(of body: BodyIdentifier) -> KeyRange {
    .prefix(StoreKey(bytes: prefix.bytes + [UInt8(ascii: "b")] + body.bytes))
  }

  /// Returns the key of a chunk.
  ///
  /// - Parameter offset: The place of its first byte in the body, a multiple of ``chunkLength``.
  func chunkKey(of body: BodyIdentifier, at offset: Int64) -> StoreKey {
    // Appending to one array, because a body of 1 GB has 16,000 chunks.
    var bytes = prefix.bytes
    bytes.reserveCapacity(chunkKeyLength)
    bytes.append(UInt8(ascii: "b"))
    for number in [body.high, body.low, UInt64(bitPattern: offset)] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    return StoreKey(bytes: bytes)
  }

  /// Returns the body of a chunk and the place of its first byte, or `nil` if the key is not that of a chunk.
  func chunk(_ key: StoreKey) -> (body: BodyIdentifier, offset: Int64)? {
    let bytes = key.bytes.dropFirst(prefix.count + 1)
    let offset = UInt64(bigEndianBytes: bytes.dropFirst(BodyIdentifier.length))
    guard key.count == chunkKeyLength, offset < Self.maximumBodyLength,
      let body = BodyIdentifier(bytes.prefix(BodyIdentifier.length))
    else { return nil }
    return (body, Int64(offset))
  }

  private var chunkKeyLength: Int { prefix.count + 1 + BodyIdentifier.length + 8 }

  /// The number of bytes of the key and the value of a chunk that is not the last one.
  var fullChunkFootprint: Int { chunkKeyLength + Self.chunkLength }

  /// Returns the number of bytes of the keys and the values of all chunks of a body.
  ///
  /// - Parameter length: The length of the body, at most ``maximumBodyLength``.
  func footprint(ofBody length: Int64) -> Int {
    Int(length) + (Int(length) + Self.chunkLength - 1) / Self.chunkLength * chunkKeyLength
  }

  /// Returns the number of bytes of the keys and values of bodies that are being stored, at most.
  ///
  /// - Parameter share: The number of bytes that the bodies have together.
  func footprint(ofUnfinished share: Int) -> Int {
    // The first chunks of a body are stored as soon as there are enough for a batch. The last chunk is not full.
    let count = share / (StorageLayout.chunkLength * StorageLayout.batchLength) + 1
    let markLength = prefix.count + 1 + BodyIdentifier.length + BodyMark.length
    return footprint(ofBody: Int64(share)) + count * (markLength + chunkKeyLength)
  }

  /// Returns whether an entry is the mark of a body that is being stored or a retired body.
  func isTransient(_ key: StoreKey) -> Bool { marks.contains(key) || retired.contains(key) }

  /// Reads the value of a retired body, or returns `nil` if it is damaged.
  func footprint(ofRetired value: [UInt8]) -> Int? {
    let footprint = Int(clamping: UInt64(bigEndianBytes: value))
    return value.count == 8 && footprint <= self.footprint(ofBody: Self.maximumBodyLength) ? footprint : nil
  }

  /// The greatest length of a body, so sums cannot overflow if a record is damaged.
  static let maximumBodyLength: Int64 = 1 << 44

  // MARK: Invalidations

  func invalidationKey(_ number: UInt64) -> StoreKey {
    StoreKey(bytes: prefix.bytes + [UInt8(ascii: "i")] + number.bigEndianBytes)
  }
}

extension BodyIdentifier {
  static let length = 16

  /// Creates a random identifier.
  static func random() -> BodyIdentifier {
    BodyIdentifier(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max))
  }

  /// Reads an identifier, or returns `nil` if there are not exactly 16 bytes.
  init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.length else { return nil }
    self.init(high: UInt64(bigEndianBytes: bytes.prefix(8)), low: UInt64(bigEndianBytes: bytes.dropFirst(8)))
  }

  var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
}

extension StoreKey {
  fileprivate static func + (left: StoreKey, right: StoreKey) -> StoreKey {
    StoreKey(bytes: left.bytes + right.bytes)
  }
}
#endif
