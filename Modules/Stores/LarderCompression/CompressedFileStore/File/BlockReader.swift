#if Compression
import LarderFiles
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Reads blocks of a file, and keeps the texts of those that were read last.
final class BlockReader: Sendable {
  /// Which file a block is read from.
  struct Source: Sendable {
    let file: any OpenFile
    /// Tells the file from those that compaction has put in its place or that it took the place of.
    let generation: Int
    /// What its blocks are.
    let format: FileFormat
  }

  /// A block, or what it should be, is damaged.
  struct Damage: Error {
    let block: Int64
  }

  private struct Kept {
    var cache: BlockCache
    /// Whose blocks there are.
    var generation = 0
  }

  /// What is read at first; most blocks are not longer.
  private static let firstReadSize: Int64 = 8192

  let inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
  private let kept: Mutex<Kept>

  /// Makes a reader.
  ///
  /// - Parameter cacheSize: The most bytes that the texts may take that are kept.
  init(cacheSize: Int) {
    kept = Mutex(Kept(cache: BlockCache(capacity: cacheSize)))
  }

  /// The bytes that the texts take that are kept.
  var cachedSize: Int { kept.withLock { $0.cache.size } }

  /// Forgets the blocks of all files but one.
  func keepOnly(_ generation: Int) {
    let old = kept.withLock { kept in
      let old = kept.cache
      kept.cache.removeAll()
      kept.generation = generation
      return old
    }
    // Released here, outside the lock.
    _ = consume old
  }

  /// Reads a block.
  ///
  /// - Parameters:
  ///   - offset: Where it begins.
  ///   - source: The file.
  ///   - isKept: Whether it is kept for later reads.
  /// - Throws: ``Damage``; ``FileError``.
  func block(at offset: Int64, of source: Source, isKept: Bool) throws -> BlockCache.Block {
    let found = kept.withLock { kept in
      kept.generation == source.generation ? kept.cache.block(at: offset) : nil
    }
    if let found { return found }
    let block = try readBlock(at: offset, of: source)
    if isKept {
      let removed = kept.withLock { kept in
        kept.generation == source.generation ? kept.cache.insert(block, at: offset) : []
      }
      _ = consume removed
    }
    return block
  }

  /// Reads a block from the file, whatever was kept.
  ///
  /// - Parameters:
  ///   - offset: Where it begins.
  ///   - source: The file.
  /// - Throws: ``Damage``; ``FileError``.
  func readBlock(at offset: Int64, of source: Source) throws -> BlockCache.Block {
    let file = source.file
    var bytes = try firstBytes(at: offset, of: file)
    func readMore(upTo size: Int) throws {
      guard size > bytes.count else { return }
      bytes += try file.readAll(from: offset + Int64(bytes.count), upTo: offset + Int64(size))
    }
    do {
      switch source.format {
      case .version1:
        guard let size = bytes.withUnsafeBytes({ Version1Header.size(at: $0) }) else { throw BlockText.Damage() }
        try readMore(upTo: size)
        let parsed = try bytes.withUnsafeBytes { try Version1Header.parse($0) }
        try readMore(upTo: parsed.blockSize)
        let text = try bytes.withUnsafeBytes { bytes in
          try Version1Header.text(
            parsed, of: UnsafeRawBufferPointer(rebasing: bytes.prefix(parsed.blockSize)), by: inflaters)
        }
        return BlockCache.Block(
          text: text, end: offset + Int64(parsed.blockSize),
          isContinuation: parsed.header.flags.contains(.beginsWithinLine))
      case .version2(let head, _):
        guard let size = bytes.withUnsafeBytes({ BlockFrame.size(at: $0) }) else { throw BlockText.Damage() }
        try readMore(upTo: size)
        return try bytes.withUnsafeBytes { bytes in
          let block = UnsafeRawBufferPointer(rebasing: bytes.prefix(size))
          guard block.count == size, BlockFrame.isSealed(block, salt: head.salt, at: offset) else {
            throw BlockText.Damage()
          }
          return BlockCache.Block(
            text: try BlockText.text(of: block, by: inflaters), end: offset + Int64(size),
            isContinuation: BlockFrame.isContinuation(block))
        }
      }
    } catch let error where error is BlockText.Damage || error is Version1Header.Problem {
      throw Damage(block: offset)
    }
  }

  private func firstBytes(at offset: Int64, of file: any OpenFile) throws(FileError) -> [UInt8] {
    do throws(FileError) {
      return try file.readAll(from: offset, upTo: offset + BlockReader.firstReadSize)
    } catch {
      guard error.errorNumber == EIO else { throw error }
      // What the disk cannot read may be the next block: this many bytes say how long the one is, in each version.
      return try file.readAll(from: offset, upTo: offset + Int64(Version1Header.lengthEnd))
    }
  }
}
#endif
