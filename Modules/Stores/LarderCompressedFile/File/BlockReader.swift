#if Compression
import LarderCompression
import LarderFiles
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A reader of blocks, with a cache of the most recently read texts.
final class BlockReader: Sendable {
  /// The file that a block is read from.
  struct Source: Sendable {
    let file: any OpenFile
    /// A number that increases each time compaction replaces the file.
    let generation: Int
    /// The format of its blocks.
    let format: FileFormat
  }

  /// An error that reports a damaged or missing block.
  struct Damage: Error {
    let block: Int64
  }

  private struct Kept {
    var cache: BlockCache
    /// The file whose blocks are cached.
    var generation = 0
  }

  /// The size of the first read, which most blocks do not exceed.
  private static let firstReadSize: Int64 = 8192

  let inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
  private let kept: Mutex<Kept>

  /// Creates a reader.
  ///
  /// - Parameter cacheSize: The maximum size of the cache, in bytes.
  init(cacheSize: Int) {
    kept = Mutex(Kept(cache: BlockCache(capacity: cacheSize)))
  }

  /// The current size of the cache, in bytes.
  var cachedSize: Int { kept.withLock { $0.cache.size } }

  /// Discards the cached blocks of all other files.
  func keepOnly(_ generation: Int) {
    let old = kept.withLock { kept in
      let old = kept.cache
      kept.cache.removeAll()
      kept.generation = generation
      return old
    }
    // Released outside the lock.
    _ = consume old
  }

  /// Returns the block at an offset, from the cache or from the file.
  ///
  /// - Parameters:
  ///   - offset: The offset of the block in the file.
  ///   - source: The file.
  ///   - isKept: Whether to cache the block.
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

  /// Returns the block at an offset, read from the file even if it is cached.
  ///
  /// - Parameters:
  ///   - offset: The offset of the block in the file.
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
        try readMore(upTo: BlockFrame.maximumSize)
        return try bytes.withUnsafeBytes { bytes in
          guard let header = try Version1Header(bytes) else { throw BlockText.Damage() }
          return BlockCache.Block(
            text: try header.text(of: bytes, by: inflaters), end: offset + Int64(header.blockSize),
            isContinuation: header.isContinuation)
        }
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
    } catch let error where error is BlockText.Damage || error is FileProblem {
      throw Damage(block: offset)
    }
  }

  private func firstBytes(at offset: Int64, of file: any OpenFile) throws(FileError) -> [UInt8] {
    do throws(FileError) {
      return try file.readAll(from: offset, upTo: offset + BlockReader.firstReadSize)
    } catch {
      guard error.errorNumber == EIO else { throw error }
      // The unreadable bytes may belong to the next block. This many bytes state the size of this block.
      return try file.readAll(from: offset, upTo: offset + Int64(BlockFrame.headerSize))
    }
  }
}

/// A bounded cache of block texts with the clock eviction policy: the hand passes over a block once if it was read
/// since the hand last passed.
struct BlockCache {
  /// The text of a block, and the offset of the next one.
  struct Block: Equatable, Sendable {
    var text: [UInt8]
    var end: Int64
    /// Whether the text continues a line that the previous block began.
    var isContinuation = false
  }

  private struct Slot {
    var offset: Int64
    var block: Block
    var wasRead: Bool
  }

  /// The approximate size of a slot in addition to its text, in bytes.
  private static let overhead = 96

  /// The maximum size of the cache, in bytes.
  let capacity: Int

  /// The current size of the cache, in bytes.
  private(set) var size = 0

  private var slots: [Slot] = []
  private var places: [Int64: Int] = [:]
  private var hand = 0

  /// Creates a cache.
  ///
  /// - Parameter capacity: The maximum size of the cache, in bytes, or 0 for no cache.
  init(capacity: Int) {
    self.capacity = capacity
  }

  /// Returns the block at an offset of the file, or `nil` if it is not cached.
  mutating func block(at offset: Int64) -> Block? {
    guard let place = places[offset] else { return nil }
    slots[place].wasRead = true
    return slots[place].block
  }

  /// Adds a block, and evicts others if there is not enough room.
  ///
  /// - Returns: The evicted blocks, so that the caller can release them outside a lock.
  mutating func insert(_ block: Block, at offset: Int64) -> [Block] {
    let cost = BlockCache.cost(of: block)
    guard cost <= capacity, places[offset] == nil else { return [] }
    var removed: [Block] = []
    while size + cost > capacity {
      if hand >= slots.count { hand = 0 }
      if slots[hand].wasRead {
        slots[hand].wasRead = false
        hand += 1
      } else {
        removed.append(remove(at: hand))
      }
    }
    places[offset] = slots.count
    slots.append(Slot(offset: offset, block: block, wasRead: false))
    size += cost
    return removed
  }

  private mutating func remove(at place: Int) -> Block {
    let slot = slots[place]
    size -= BlockCache.cost(of: slot.block)
    places[slot.offset] = nil
    // The last slot moves to the free index.
    let last = slots.removeLast()
    if place < slots.count {
      slots[place] = last
      places[last.offset] = place
    }
    return slot.block
  }

  /// Removes all blocks.
  mutating func removeAll() {
    self = BlockCache(capacity: capacity)
  }

  private static func cost(of block: Block) -> Int { block.text.count + overhead }
}
#endif
