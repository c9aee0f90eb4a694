#if HTTPCache
import HTTPCachingRules
public import Larder

extension HTTPCacheInspector {
  /// The result of a verification.
  public struct Verification: Sendable, Hashable {
    /// The number of entries that were checked, and the damage that was found, in the order of the keys.
    public internal(set) var report = VerificationReport(entryCount: 0)

    /// A Boolean value that indicates whether no program changed the cache in the meantime, so its totals could be
    /// compared with its entries.
    ///
    /// If not, the report has only the damage that three walks over the entries found alike.
    public internal(set) var isComplete = true
  }

  /// Reads every entry of the cache and checks it.
  ///
  /// It checks that each record can be read and is at its place in the order of use, that each body is complete and
  /// belongs to exactly one response, mark or retired body, and that the totals are those of the entries. Bytes of a
  /// body or of a field that were changed in place are found only if the codec of the store checks its values, such as
  /// `.raw.checksummed()`.
  ///
  /// - Returns: The result.
  /// - Throws: `StoreError` with `versionMismatch`; the errors of the store, except for those that report a damaged
  ///   entry.
  public func verify() async throws -> Verification {
    var (verification, common): (Verification, Set<VerificationReport.Finding>?) = (Verification(), nil)
    for _ in 0..<3 {
      let before = try await verificationState()
      var walk = VerificationWalk(storage: storage)
      try await walk.run(self)
      // Counted before the state is read again, so that the state also says whether the number may be compared.
      let count = try await storage.base.count(in: storage.layout.everything)
      verification.report = VerificationReport(entryCount: walk.entryCount)
      if try await verificationState() == before {
        try walk.check(totals: before.totals, count: count)
        verification.report.findings = walk.sortedFindings
        verification.isComplete = true
        return verification
      }
      common = common.map { $0.intersection(walk.findings) } ?? Set(walk.findings)
      verification.isComplete = false
    }
    verification.report.findings = (common ?? []).sorted { ($0.key ?? "") < ($1.key ?? "") }
    return verification
  }

  private func verificationState() async throws -> VerificationState {
    var state = VerificationState(
      totals: try await storage.readableValue(forKey: storage.layout.totalsKey, unreadable: []))
    for range in [storage.layout.marks, storage.layout.retired] {
      try await forEachEntry(in: range) { state.bodies.append($0) }
    }
    return state
  }
}

/// The entries that tell whether a cache was changed, except for a change of a head that leaves its length as it was.
///
/// The totals alone do not suffice: a chunk that is stored and one that is removed leave their sum as it was.
private struct VerificationState: Equatable {
  /// The record of the totals.
  let totals: [UInt8]?

  /// The marks of the bodies that are being stored, with their lengths so far, and the retired bodies, with what is
  /// left of them.
  var bodies: [StoreEntry<[UInt8]>] = []
}

/// One walk over all entries of a cache.
private struct VerificationWalk {
  /// The entry that a body belongs to.
  private struct Owner {
    enum Size {
      /// The length of the body in bytes.
      case length(Int64)
      /// The length of a body that is being stored.
      ///
      /// It may have grown since.
      case lengthSoFar(Int64)
      /// The number of bytes of the keys and values of its remaining chunks.
      case footprint(Int)
    }

    let key: StoreKey
    let size: Size
  }

  /// The chunks of a body so far.
  private struct Chunks {
    let body: BodyIdentifier
    let firstKey: StoreKey
    /// The place of the first byte after the chunks.
    ///
    /// It must be the place of the next one.
    var end: Int64
    var footprint = 0
    /// A Boolean value that indicates whether the chunks begin at the beginning of the body.
    let isFromBeginning: Bool
    /// A Boolean value that indicates whether a chunk is missing between two, or one that is not the last has another
    /// length than all others.
    var hasGap = false
  }

  private let storage: CacheStorage
  private var layout: StorageLayout { storage.layout }

  private(set) var findings: [VerificationReport.Finding] = []
  private(set) var entryCount = 0
  private var bytes = 0
  private var transient = 0
  private var reserved = 0
  private var responses: Set<StoreKey> = []
  private var place: UInt64 = 0
  private var owners: [BodyIdentifier: Owner] = [:]
  private var chunks: Chunks?

  init(storage: CacheStorage) {
    self.storage = storage
  }

  var sortedFindings: [VerificationReport.Finding] { findings.sorted { ($0.key ?? "") < ($1.key ?? "") } }

  private mutating func find(_ key: StoreKey, _ message: String) {
    findings.append(
      VerificationReport.Finding(key: key, place: storage.base.information.name, message: message))
  }

  private mutating func count(_ entry: StoreEntry<[UInt8]>) {
    entryCount += 1
    bytes += entry.key.count + entry.value.count
    if layout.isTransient(entry.key) { transient += entry.key.count + entry.value.count }
  }

  /// Reads all entries: first the owners of bodies, in the order in which a body changes its owner, and then the
  /// chunks.
  mutating func run(_ inspector: HTTPCacheInspector) async throws {
    try await inspector.forEachEntry(in: layout.marks) { readMark($0) }
    try await inspector.forEachEntry(in: layout.responses) { try await readResponse($0) }
    try await inspector.forEachEntry(in: layout.retired) { readRetired($0) }
    try await inspector.forEachEntry(in: layout.uses) { readUse($0) }
    try await inspector.forEachEntry(in: layout.invalidations) { count($0) }
    try await inspector.forEachEntry(in: layout.bodies) { try await readChunk($0) }
    try await endBody()
    for (_, owner) in owners {
      if try await isUnchanged(owner) { find(owner.key, "all chunks of the body are missing") }
    }
  }

  // MARK: Owners

  private mutating func readMark(_ entry: StoreEntry<[UInt8]>) {
    count(entry)
    guard let body = layout.body(ofMark: entry.key), let mark = BodyMark(entry.value) else {
      return find(entry.key, "the mark of a body that is being stored cannot be read")
    }
    reserved += Int(mark.reserved)
    own(body, Owner(key: entry.key, size: .lengthSoFar(mark.count)))
  }

  private mutating func readRetired(_ entry: StoreEntry<[UInt8]>) {
    count(entry)
    guard let retired = layout.retired(entry.key), let footprint = layout.footprint(ofRetired: entry.value) else {
      return find(entry.key, "the size of a retired body cannot be read")
    }
    own(retired.body, Owner(key: entry.key, size: .footprint(footprint)))
  }

  private mutating func own(_ body: BodyIdentifier, _ owner: Owner) {
    if let other = owners.updateValue(owner, forKey: body) {
      find(max(other.key, owner.key), "the body belongs to another entry as well")
    }
  }

  private mutating func readResponse(_ entry: StoreEntry<[UInt8]>) async throws {
    count(entry)
    responses.insert(entry.key)
    guard let stored = StoredEntry(entry.key, entry.value) else {
      // Its place still says which bodies it has.
      return find(entry.key, "the record of the response cannot be read")
    }
    let response = stored.response
    place = max(place, stored.place)
    if !layout.variants(url: response.url, partition: response.partition).contains(entry.key) {
      find(entry.key, "the record has the URL or the partition of another key")
    }
    for body in stored.bodies {
      own(body.identifier, Owner(key: entry.key, size: .length(body.length)))
    }
    let use = try await storage.readableValue(
      forKey: layout.useKey(of: entry.key, at: stored.place), unreadable: [])
    // The response may have been used or freshened since it was read.
    if use.flatMap({ UseRecord($0, layout: layout) }) != stored.use,
      try await storage.base.value(forKey: entry.key) == entry.value
    {
      find(entry.key, "the place of the response in the order of use is missing or differs from the record")
    }
  }

  private mutating func readUse(_ entry: StoreEntry<[UInt8]>) {
    count(entry)
    guard let use = UseRecord(entry.value, layout: layout) else {
      return find(entry.key, "a place in the order of use cannot be read")
    }
    if !responses.contains(use.responseKey) {
      find(entry.key, "a place in the order of use has no response")
    }
    // The bodies of a response whose record is damaged are known here.
    for body in use.bodies where owners[body.identifier] == nil {
      owners[body.identifier] = Owner(key: use.responseKey, size: .length(body.length))
    }
  }

  // MARK: Bodies

  private mutating func readChunk(_ entry: StoreEntry<[UInt8]>) async throws {
    count(entry)
    guard let (body, offset) = layout.chunk(entry.key) else {
      return find(entry.key, "the key of a chunk of a body is not valid")
    }
    if chunks?.body != body {
      try await endBody()
      chunks = Chunks(body: body, firstKey: entry.key, end: offset, isFromBeginning: offset == 0)
    }
    let chunkLength = Int64(StorageLayout.chunkLength)
    if chunks?.end != offset || offset % chunkLength != 0 { chunks?.hasGap = true }
    chunks?.end = offset + Int64(entry.value.count)
    chunks?.footprint += entry.key.count + entry.value.count
  }

  private mutating func endBody() async throws {
    guard let chunks else { return }
    self.chunks = nil
    guard let owner = owners.removeValue(forKey: chunks.body) else {
      return find(chunks.firstKey, "the chunks of a body belong to no response")
    }
    let isWhole: Bool
    switch owner.size {
    case .length(let length): isWhole = chunks.isFromBeginning && chunks.end == length
    case .lengthSoFar(let length):
      isWhole = chunks.isFromBeginning && chunks.end >= length
      transient += chunks.footprint
    case .footprint(let footprint):
      isWhole = chunks.footprint == footprint
      transient += chunks.footprint
    }
    if chunks.hasGap || !isWhole, try await isUnchanged(owner) {
      find(owner.key, "chunks of the body are missing or have other lengths")
    }
  }

  /// Returns whether the chunks of a body must still be those of its owner, as it was read.
  ///
  /// A program removes the chunks of a retired body in several steps, so three walks can find each a part of them.
  private func isUnchanged(_ owner: Owner) async throws -> Bool {
    guard case .footprint(let footprint) = owner.size else { return true }
    let value = try await storage.readableValue(forKey: owner.key, unreadable: [])
    return value.flatMap { layout.footprint(ofRetired: $0) } == footprint
  }

  // MARK: Totals

  /// Compares the entries with the totals.
  ///
  /// - Parameters:
  ///   - record: The record of the totals.
  ///   - count: The number of all entries with the prefix of the cache.
  /// - Throws: `StoreError` with `versionMismatch`.
  mutating func check(totals record: [UInt8]?, count: Int) throws {
    let count = count - (record == nil ? 0 : 1)
    if count != entryCount {
      find(layout.prefix, "the cache has \(count - entryCount) entries of no known kind")
    }
    let totals: StorageTotals
    do {
      totals = try StorageTotals(record, store: storage.base.information.name, for: .verify)
    } catch let error as StoreError where error.code == .corrupted {
      return find(layout.totalsKey, error.message)
    }
    if totals.bytes != bytes {
      find(layout.totalsKey, "the totals have \(totals.bytes) bytes, but the entries have \(bytes)")
    }
    if totals.responses != responses.count {
      find(layout.totalsKey, "the totals have \(totals.responses) responses, but there are \(responses.count)")
    }
    if totals.unfinished != reserved {
      find(
        layout.totalsKey, "the totals have \(totals.unfinished) reserved bytes, but the marks reserve \(reserved)")
    }
    if totals.transient != transient {
      find(
        layout.totalsKey,
        "the totals have \(totals.transient) bytes of unfinished and retired bodies, but the entries have \(transient)")
    }
    if totals.place < place { find(layout.totalsKey, "a response has a later place than the totals") }
  }
}
#endif
