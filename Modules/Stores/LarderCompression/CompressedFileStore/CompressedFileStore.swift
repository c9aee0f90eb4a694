#if Compression
public import Larder
public import LarderFiles

/// A store in one compressed file, which `zcat` reads as lines of JSON at any time.
///
/// ```swift
/// let store = try await CompressedFileStore<User>(path: "users.gz")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// The file is a sequence of gzip members, framed as BGZF (the SAM/BAM specification, section 4.1). A write appends
/// one: a small one is stored as it is, a larger one is compressed quickly. Once enough was appended the file is
/// compacted in the background: written anew, with each entry once, in key order and compressed well, in blocks of
/// about 4 KiB. `Docs/CompressedFileStore.md` has the format in full.
///
/// Only the keys, and where their values stand, are in memory: about 55 bytes an entry, and what a key has beyond 23
/// bytes. A value is read by decompressing one block, from the file or from the cache of blocks.
///
/// A value is read where the caller is, many or large ones on the cooperative pool (`Docs/Concurrency.md`); a read that has
/// to go to the disk waits for it. Writes run one after another on a
/// thread of the store's own, and compaction on another. Neither holds up a read.
///
/// ## Damage
///
/// Every block has a checksum that only this file has. If one is damaged the store opens all the same: what is lost
/// throws `corrupted` with its key and a ``DamagedBlockError``, everything else is readable, and `verify` lists the
/// damage. No older value stands in for a lost one. Compaction is refused until what is lost was set anew or removed, so
/// that nothing disappears unseen. A batch that a crash has torn never happened.
///
/// ## Sharing
///
/// One object in one process has the file open, guarded by a lock on `users.gz.lock`. Symbolic links are resolved
/// first; a file with several hard links is refused. Other programs may read the file at any time.
public final class CompressedFileStore<Value: Sendable>: DataStore {
  /// What the store is called, what its acknowledgement means, and its maintenance.
  public let information: StoreInformation

  private let writer: CompressedFileWriter
  private let coder: JSONValueCoder<Value>

  private var contents: CompressedFileContents { writer.contents }

  /// The bytes that the cache of blocks may take unless something else is said: 8 MiB.
  public static var defaultCacheSize: Int { 8 << 20 }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: The file. Its folder must exist. It is created with permissions 0600, and keeps those that it has.
  ///   - codec: Turns values into bytes and back. Where what it writes is not JSON, values stand as base64.
  ///   - durability: What happens before a write returns. Defaults to ``Durability/synced``.
  ///   - access: Whether the store may write. Defaults to ``StoreAccess/readWrite``. Any other access changes nothing on
  ///     the disk, and works on a read-only mount and on another user's file.
  ///   - createsIfMissing: Whether a missing file is created. Defaults to `true`; a store that only reads never creates it.
  ///   - cacheSize: The most bytes that decompressed blocks may take in memory, or 0 for none. Defaults to
  ///     ``defaultCacheSize``.
  ///   - fileSystem: The file system of the file. Defaults to the real one.
  /// - Throws: ``StoreError``: `locked` if another store has the file open; `unrecognizedFormat` if the file is no store;
  ///   `versionMismatch` if it was written by a newer version or with another codec; `corrupted` if it is so damaged that
  ///   nothing of it can be told; `notFound`; `unsupported` if it has several hard links or is mounted by itself;
  ///   `notPermitted`; `full`; `ioFailed`. The file is left as it is then.
  public convenience init(
    path: String, codec: some Codec<Value>, durability: Durability = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, cacheSize: Int = defaultCacheSize, fileSystem: some FileSystem = POSIXFileSystem()
  ) async throws {
    try await self.init(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing, cacheSize: cacheSize,
      fileSystem: fileSystem
    ) { _ in codec }
  }

  /// Opens a store with a codec that is chosen by the name of the one that it was written with.
  init(
    path: String, durability: Durability, access: StoreAccess, createsIfMissing: Bool,
    cacheSize: Int = defaultCacheSize,
    fileSystem: some FileSystem = POSIXFileSystem(),
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws {
    let name = FilePaths.split(path).name
    var information = StoreInformation(name: name, acknowledgement: Acknowledgement(durability), sharing: .exclusive)
    information.access = access
    let configuration = StoreFileConfiguration(
      name: name, path: path, durability: durability, access: access, createsIfMissing: createsIfMissing,
      fileSystem: fileSystem)
    let (writer, codec) = try await CompressedFileWriter.open(
      configuration, information: information, cacheSize: cacheSize, choosing: codec)
    let coder = JSONValueCoder(codec: codec, store: name)
    self.writer = writer
    information.maintenance = CompressedFileMaintenance(writer: writer, coder: coder)
    self.coder = coder
    self.information = information
  }

  /// Opens a store of `Codable` values, with ``JSONCodec``.
  ///
  /// - Parameters:
  ///   - path: The file; see ``init(path:codec:durability:access:createsIfMissing:cacheSize:fileSystem:)``.
  ///   - durability: What happens before a write returns. Defaults to ``Durability/synced``.
  ///   - access: Whether the store may write. Defaults to ``StoreAccess/readWrite``.
  ///   - createsIfMissing: Whether a missing file is created. Defaults to `true`.
  /// - Throws: As ``init(path:codec:durability:access:createsIfMissing:cacheSize:fileSystem:)``.
  public convenience init(
    path: String, durability: Durability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws where Value: Codable {
    try await self.init(
      path: path, codec: JSONCodec<Value>(), durability: durability, access: access, createsIfMissing: createsIfMissing)
  }

  deinit {
    contents.abandon()
  }

  // MARK: Reading

  /// Reads the value of one key.
  ///
  /// It is decoded where the caller is, however large it is.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` where the value is lost or cannot be decoded; `ioFailed`;
  ///   `closed`.
  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try read(for: .value) {
      $0.find(key)
    } then: { finding, reader in
      try values([(key, finding)], reader, during: .value, isKept: true)[0]
    }
  }

  /// Reads the values of several keys as they are at one moment.
  ///
  /// More than 64, those in several blocks, and more than 64 KiB of text are read and decoded off the caller's actor.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` where a value is lost or cannot be decoded; `ioFailed`;
  ///   `closed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try read(for: .values) { index in
        keys.map { (key: $0, finding: index.find($0)) }
      } then: { findings, reader in
        try take(findings, from: &allowance)
        return try values(findings, reader, during: .values, isKept: true)
      }
    }
  }

  /// Reads the first entries of a range as they are at one moment.
  ///
  /// If the limit is above 64, or the entries stand in several blocks or have more than 64 KiB of text, they are read and
  /// decoded off the caller's actor.
  ///
  /// If an entry is lost, the ``DamagedBlockError`` of the error says behind which key to go on.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `corrupted` where a value is lost or
  ///   cannot be decoded; `ioFailed`; `closed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try read(for: .entries) {
        IndexPage(of: $0, in: range, limit: limit, order: order)
      } then: { page, reader in
        try take(page.findings, from: &allowance)
        let values = try values(page.findings, reader, during: .entries, isKept: false)
        if let gap = page.gap { throw reader.gapError(gap, during: .entries) }
        return zip(page.findings, values).compactMap { finding, value in
          value.map { StoreEntry(key: finding.key, value: $0) }
        }
      }
    }
  }

  /// Reads the first keys of a range as they are at one moment, those of lost entries included.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `corrupted` where it is not known which
  ///   keys there are; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try read(for: .keys) {
      IndexPage(of: $0, in: range, limit: limit, order: order)
    } then: { page, reader in
      if let gap = page.gap { throw reader.gapError(gap, during: .keys) }
      return page.findings.map(\.key)
    }
  }

  /// Counts the entries of a range.
  ///
  /// Lost entries count, as far as their keys are known.
  ///
  /// - Throws: ``StoreError``: `corrupted` if it is not known which keys there are; `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try read(for: .count) { index in
      (index.entries.count(in: range), index.gap(in: range))
    } then: { found, reader in
      if let gap = found.1 { throw reader.gapError(gap, during: .count) }
      return found.0
    }
  }

  private func read<Found: Sendable, Result>(
    for operation: StoreOperation, _ body: (CompressedFileIndex) -> Found,
    then use: (Found, LineReader) throws -> Result
  ) throws -> Result {
    guard let result = try contents.read(body, then: use) else { throw information.closedError(for: operation) }
    return result
  }

  /// Takes the bytes that must be read and decompressed for a few entries: for one line, all of its block.
  private func take(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], from allowance: inout BulkWork.Allowance
  ) throws {
    guard findings.count <= BulkWork.entryLimit else { return }
    var (count, blocks): (Int, Set<Int64>) = (0, [])
    for case .found(let place) in findings.lazy.map(\.finding) {
      count += Int(place.length)
      blocks.insert(place.block)
    }
    // One block is nothing that the caller would notice.
    try allowance.take(count + max(blocks.count - 1, 0) * BlockText.maximumSize)
  }

  private func values(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], _ reader: LineReader,
    during operation: StoreOperation, isKept: Bool
  ) throws -> [Value?] {
    try reader.read(findings, during: operation, isKept: isKept) { key, line in
      let text = try coder.text(ofLine: line, forKey: key, during: operation)
      return try coder.value(of: text, forKey: key, during: operation)
    }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  ///
  /// More than 64 values, or more than 64 KiB of text, are encoded off the caller's actor.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    try await writer.apply(await coder.texts(of: changes))
  }

  /// Reads, changes and writes back the values of some keys as one step; see ``DataStore/update(_:_:)``.
  ///
  /// `body` runs on the thread of the store's writer. Where it leaves every value as it was, nothing is written.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, information) = (coder, information)
    return try await writer.update(keys) { lines in
      let texts = try zip(keys, lines).map { key, line in
        try line.map { try coder.text(ofLine: $0, forKey: key, during: .update) }
      }
      return try coder.update(keys, texts, checks: information, body)
    }
  }

  /// Makes everything written before durable against power loss.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`; `full`.
  public func synchronize() async throws {
    try await writer.synchronize()
  }

  /// Waits for running operations and a compaction that goes on, gives the file its end, and lets others open it.
  ///
  /// A small store most of whose file is useless is compacted before.
  ///
  /// - Throws: ``StoreError``: `ioFailed`; `full`. The store is closed all the same, and everything that was
  ///   acknowledged is in the file.
  public func close() async throws {
    try await writer.close()
  }
}

extension CompressedFileStore: CustomStringConvertible {
  /// The store's kind and name.
  public var description: String { "CompressedFileStore(\(information.name))" }
}
#endif
