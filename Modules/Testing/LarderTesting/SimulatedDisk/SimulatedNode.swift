import LarderFiles

/// A file or directory of a ``SimulatedFileSystem``: the state that programs see, the durable state, and the pending
/// changes between them.
struct SimulatedNode {
  /// A change of a file's content that is not durable yet.
  enum ContentChange {
    case write(bytes: [UInt8], offset: Int)
    case truncate(size: Int)
  }

  var isDirectory: Bool
  var permissions: UInt32

  var owner = FileAttributes.Owner(user: 0, group: 0)

  /// The time of the last change of the content, which each change advances by one nanosecond.
  var modificationTime: Int64 = 0

  /// The content of a file as programs see it, and as it is on the disk.
  var content: [UInt8] = []
  var durableContent: [UInt8] = []
  var contentChanges: [ContentChange] = []

  /// The names in a directory as programs see them, and as they are on the disk.
  var names: [String: Int] = [:]
  var durableNames: [String: Int] = [:]

  /// The number of names that programs see.
  ///
  /// It is zero after the node was removed or replaced.
  var linkCount = 0

  /// The open files that hold a lock.
  var locks: [Int: FileLock.Kind] = [:]

  // MARK: As programs see it

  mutating func change(_ change: ContentChange) {
    SimulatedNode.apply(change, to: &content)
    contentChanges.append(change)
    modificationTime += 1
  }

  // MARK: Making durable

  mutating func synchronizeContent() {
    for change in contentChanges { SimulatedNode.apply(change, to: &durableContent) }
    contentChanges.removeAll()
  }

  /// Writes a random part of the pending changes to the disk and discards the rest.
  ///
  /// Programs still see all of the changes.
  mutating func loseContentChanges(using generator: inout SeededGenerator) {
    for change in contentChanges { survive(change, using: &generator) }
    contentChanges.removeAll()
  }

  // MARK: Losing power

  /// Keeps the durable state and a random part of the pending content.
  mutating func losePower(using generator: inout SeededGenerator) {
    loseContentChanges(using: &generator)
    content = durableContent
    names = durableNames
    locks = [:]
  }

  /// Applies a change to the durable content: all of it, nothing, some of its sectors, or garbage.
  private mutating func survive(_ change: ContentChange, using generator: inout SeededGenerator) {
    guard case .write(let bytes, let offset) = change else {
      if Bool.random(using: &generator) { SimulatedNode.apply(change, to: &durableContent) }
      return
    }
    switch Int.random(in: 0..<8, using: &generator) {
    case 0..<3: SimulatedNode.apply(change, to: &durableContent)
    case 3..<5: break
    case let fate:
      for sector in SimulatedNode.sectors(of: bytes, offset: offset) where Bool.random(using: &generator) {
        var sector = sector
        if fate == 7 {
          for index in sector.bytes.indices { sector.bytes[index] = UInt8.random(in: .min ... .max, using: &generator) }
        }
        SimulatedNode.apply(.write(bytes: sector.bytes, offset: sector.offset), to: &durableContent)
      }
      // The length of a file may be written before its content, which then reads as zeros.
      let end = offset + bytes.count
      if durableContent.count < end, Bool.random(using: &generator) {
        SimulatedNode.resize(&durableContent, to: end)
      }
    }
  }

  /// Returns the parts of a write, split at the boundaries of 512-byte sectors.
  private static func sectors(of bytes: [UInt8], offset: Int) -> [(bytes: [UInt8], offset: Int)] {
    var sectors: [(bytes: [UInt8], offset: Int)] = []
    var start = offset
    while start < offset + bytes.count {
      let end = min((start / 512 + 1) * 512, offset + bytes.count)
      sectors.append((Array(bytes[start - offset..<end - offset]), start))
      start = end
    }
    return sectors
  }

  // MARK: Applying

  private static func apply(_ change: ContentChange, to content: inout [UInt8]) {
    switch change {
    case .write(let bytes, let offset):
      if content.count < offset { resize(&content, to: offset) }
      let overlap = min(content.count - offset, bytes.count)
      // `replaceSubrange` would take most of a trial's time in a debug build.
      content.withUnsafeMutableBytes { content in
        bytes.withUnsafeBytes { bytes in
          UnsafeMutableRawBufferPointer(rebasing: content[offset..<offset + overlap])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<overlap]))
        }
      }
      content.append(contentsOf: bytes[overlap...])
    case .truncate(let size):
      resize(&content, to: size)
    }
  }

  private static func resize(_ content: inout [UInt8], to size: Int) {
    if content.count > size {
      content.removeLast(content.count - size)
    } else {
      content.append(contentsOf: [UInt8](repeating: 0, count: size - content.count))
    }
  }
}

/// A change of names on a ``SimulatedDisk`` that is not durable yet.
///
/// It becomes durable as a whole or not at all, even if it concerns two directories.
struct SimulatedNameChange {
  /// A name in a directory.
  struct Place: Equatable {
    var directory: Int
    var name: String
  }

  /// The place of the name that is removed, if any.
  var removed: Place?
  /// The place of the name that is added, and the node that it refers to, if any.
  var added: (place: Place, node: Int)?

  /// The directories whose names change.
  var directories: [Int] { [removed, added?.place].compactMap { $0?.directory } }
}
