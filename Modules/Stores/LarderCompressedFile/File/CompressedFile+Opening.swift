#if Compression
import Larder
import LarderCompression
import LarderFiles

extension CompressedFile {
  /// Opens the file, or creates it if it is missing.
  ///
  /// An existing file is only read.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the store.
  ///   - cacheSize: The maximum size of the block cache, in bytes.
  ///   - newCodecName: The name of the codec of a new file.
  /// - Throws: ``StoreError``.
  static func open(
    _ configuration: StoreFileConfiguration, cacheSize: Int, newCodecName: String
  ) throws -> CompressedFile {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      try refuseForeignFile(configuration)
      var (path, lock, openedFiles) = try configuration.takeLock()
      let contents = CompressedFileContents(store: configuration.name, cacheSize: cacheSize)
      let fileSystem = configuration.fileSystem
      if try fileSystem.attributes(at: path) == nil {
        // Not in place, because a crash would leave a damaged file.
        try fileSystem.replaceFile(at: path) { try $0.write(newFile(codecName: newCodecName)) }
      }
      let isWritten = configuration.access == .readWrite
      let file = try fileSystem.open(path, isWritten ? .readWrite : .read)
      let attributes = try file.attributes()
      try configuration.checkKind(attributes, of: path, isWritten: isWritten)
      openedFiles.note(attributes.identity, at: path, as: .data)
      let found = try scan(
        file, of: path, size: attributes.size, configuration, contents.blocks.inflaters, during: .open)
      guard let codecName = found.codecName else {
        throw configuration.error(
          .corrupted, during: .open,
          "\(path) is damaged at byte 0, so the codec of its values is unknown; it was left unchanged")
      }
      contents.replace(found.index, of: file, in: found.format)
      return CompressedFile(
        configuration: configuration, contents: contents, path: path, lock: lock, opened: openedFiles,
        codecName: codecName, file: file, size: attributes.size, found: found)
    }
  }

  /// Returns the bytes of a store without entries.
  private static func newFile(codecName: String) -> [UInt8] {
    let head = FileHead(codecName: codecName)
    let size = head.end + Int64(BlockFrame.endOfFileMarker.count)
    return head.block + head.block(of: .closed(end: head.end, batch: 0, size: size)) + BlockFrame.endOfFileMarker
  }

  /// Refuses the file of another program before a lock file is created beside it.
  ///
  /// A file that does not begin like a store is read to its end, because it may be a store whose beginning is damaged.
  private static func refuseForeignFile(_ configuration: StoreFileConfiguration) throws {
    let fileSystem = configuration.fileSystem
    guard configuration.access == .readWrite, let attributes = try fileSystem.attributes(at: configuration.path)
    else { return }
    let path = try fileSystem.canonicalPath(of: configuration.path)
    guard try fileSystem.attributes(at: path + ".lock") == nil else { return }
    try configuration.checkKind(attributes, of: path)
    let file = try fileSystem.open(path, .read)
    let start = try file.readAll(from: 0, upTo: min(attributes.size, Int64(BlockFrame.maximumSize)))
    let foreign = try configuration.reportingZlibErrors(during: .open) {
      try FileIdentity.foreignFile(beginning: start)
    }
    guard foreign != nil else { return }
    let inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
    _ = try scan(file, of: path, size: attributes.size, configuration, inflaters, during: .open)
  }

  private init(
    configuration: StoreFileConfiguration, contents: CompressedFileContents, path: String, lock: FileLock?,
    opened: OpenedFiles, codecName: String, file: any OpenFile, size: Int64, found: FoundFile
  ) {
    self.configuration = configuration
    self.contents = contents
    self.path = path
    self.lock = lock
    self.opened = opened
    self.codecName = codecName
    self.file = file
    format = found.format
    layout = Layout(
      end: found.end, appendStart: found.end, baseEnd: found.baseEnd, blockCount: found.blockCount,
      textSize: found.textSize, baseTextSize: found.baseTextSize, changeSize: found.changeSize,
      lastBatch: found.lastBatch, durableBatch: found.lastBatch, tornSize: found.tornSize,
      foreignSize: found.foreignSize, notesEnd: found.notesEnd, unnoted: found.unnoted)
    isUncertain = !found.isClosed
    sizeAtOpening = size
    layout.compactionSize = CompressedFile.compactionSize(behind: found.baseEnd)
  }

  /// Reads a whole file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - path: The path of the file.
  ///   - size: The size of the file, in bytes.
  ///   - known: The end of its blocks and the last of their batches, if known.
  ///   - configuration: The configuration of the store.
  ///   - inflaters: The streams that decompress the blocks.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``; ``FileError``.
  static func scan(
    _ file: any OpenFile, of path: String, size: Int64, upTo known: (end: Int64, batch: UInt64)? = nil,
    _ configuration: StoreFileConfiguration, _ inflaters: StreamPool<Inflater>, during operation: StoreOperation
  ) throws -> FoundFile {
    do {
      return try FileScan.scan(size: size, upTo: known, inflaters: inflaters) { range in
        // For a reader, bytes that the disk cannot read count as lost. A writer fails, because the bytes that it
        // appends could be lost too.
        configuration.access == .readWrite && operation == .open
          ? try file.readAll(from: range.lowerBound, upTo: range.upperBound)
          : try file.readable(from: range.lowerBound, upTo: range.upperBound).bytes
      }
    } catch let problem as FileProblem {
      throw error(of: problem, path, configuration, during: operation)
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: configuration.name)
    }
  }

  private static func error(
    of problem: FileProblem, _ path: String, _ configuration: StoreFileConfiguration, during operation: StoreOperation
  ) -> StoreError {
    switch problem {
    case .notGzip:
      return configuration.error(
        .unrecognizedFormat, during: operation, "\(path) is not a gzip file, so it is not a store")
    case .plainGzip:
      return configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is a gzip file of another program; import its content into a new store")
    case .foreignBlocks(let name):
      return configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is \(name ?? "a gzip file in blocks (BGZF)") of another program, not a store")
    case .newerVersion(let version):
      return configuration.error(
        .versionMismatch, during: operation,
        "\(path) has version \(version) of the format; this version of Larder reads up to \(StoreLine.version), so update it"
      )
    case .damaged(let offset, let reason):
      return configuration.error(
        .corrupted, during: operation, "\(path) is damaged at byte \(offset): \(reason); it was left unchanged")
    }
  }
}
#endif
