#if Compression
import Larder
import LarderFiles

/// Reads lines of one file, those of one block together.
struct LineReader: Sendable {
  let blocks: BlockReader
  let source: BlockReader.Source

  /// The name of the store, in errors.
  let store: String

  /// Reads what stands under some keys.
  ///
  /// Each block is read once, in the order in which the blocks stand in the file.
  ///
  /// - Parameters:
  ///   - findings: The keys, and what the index knows of each.
  ///   - operation: What was asked for.
  ///   - isKept: Whether the blocks are kept for later reads.
  ///   - use: Gets a key and its line.
  /// - Returns: What `use` returned, key by key; `nil` where there is none.
  /// - Throws: ``StoreError``: `corrupted` with the first key, in the given order, whose line is lost or damaged;
  ///   `ioFailed`. What `use` throws, for the first key for which it does.
  func read<Result>(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], during operation: StoreOperation, isKept: Bool,
    _ use: (StoreKey, ArraySlice<UInt8>) throws -> Result
  ) throws -> [Result?] {
    var results = [Result?](repeating: nil, count: findings.count)
    var first: (index: Int, error: any Error)?
    var found: [(index: Int, place: EntryPlace)] = []
    for (index, finding) in findings.enumerated() {
      switch finding.finding {
      case .missing: continue
      case .found(let place): found.append((index, place))
      case .lost(let block):
        first = (index, damageError(finding.key, BlockReader.Damage(block: block), during: operation))
      }
      if first != nil { break }
    }
    if found.count > 1 { found.sort { $0.place.block < $1.place.block } }
    var last: (offset: Int64, block: BlockCache.Block)?
    for (index, place) in found where index < first?.index ?? .max {
      let key = findings[index].key
      do {
        results[index] = try use(key, try line(at: place, &last, isKept: isKept))
      } catch let damage as BlockReader.Damage {
        first = (index, damageError(key, damage, during: operation))
      } catch let error as FileError {
        first = (
          index, StoreError(error, during: operation, store: store, message: "the file of the store could not be read")
        )
      } catch let error as ZlibError {
        first = (index, StoreError(error, during: operation, store: store))
      } catch {
        first = (index, error)
      }
    }
    if let first { throw first.error }
    return results
  }

  /// Reads one line.
  ///
  /// - Parameters:
  ///   - place: Where it stands.
  ///   - last: The block that was read last.
  ///   - isKept: Whether blocks are kept for later reads.
  /// - Throws: ``BlockReader/Damage``; ``FileError``.
  func line(
    at place: EntryPlace, _ last: inout (offset: Int64, block: BlockCache.Block)?, isKept: Bool
  ) throws -> ArraySlice<UInt8> {
    if last?.offset != place.block {
      last = (place.block, try blocks.block(at: place.block, of: source, isKept: isKept))
    }
    guard var block = last?.block, place.textOffset <= block.text.count else {
      throw BlockReader.Damage(block: place.block)
    }
    let length = Int(place.length)
    let first = block.text[place.textOffset...].prefix(length)
    guard first.count < length else { return first }
    var line = Array(first)
    line.reserveCapacity(length)
    while line.count < length {
      let offset = block.end
      block = try blocks.block(at: offset, of: source, isKept: false)
      guard block.isContinuation, !block.text.isEmpty else { throw BlockReader.Damage(block: offset) }
      line.append(contentsOf: block.text.prefix(length - line.count))
    }
    return line[...]
  }

  /// The error of an entry that stands, or stood, in a damaged block.
  func damageError(_ key: StoreKey, _ damage: BlockReader.Damage, during operation: StoreOperation) -> StoreError {
    damageError(key, .only(key), damage, during: operation)
  }

  /// The error of keys of which it is not known which are there.
  func gapError(_ gap: CompressedFileIndex.Gap, during operation: StoreOperation) -> StoreError {
    damageError(gap.range.lowerBound, gap.range, BlockReader.Damage(block: gap.block), during: operation)
  }

  private func damageError(
    _ key: StoreKey, _ keys: KeyRange, _ damage: BlockReader.Damage, during operation: StoreOperation
  ) -> StoreError {
    StoreError(
      .corrupted, during: operation, store: store, key: key,
      message: "the file of the store is damaged at byte \(damage.block); set the entry anew, or take it from a copy",
      underlying: DamagedBlockError(block: damage.block, keys: keys))
  }
}
#endif
