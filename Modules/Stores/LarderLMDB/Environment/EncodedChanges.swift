#if LMDB
import CLMDB
import Larder

extension EncodedChanges {
  /// Removes the changes that would set a value which is stored already.
  ///
  /// - Parameter stored: The stored values of the keys, in ascending order of the keys. The changes remove no ranges.
  mutating func removeUnchanged(from stored: [UnsafeRawBufferPointer?]) {
    guard case .items(let items)? = steps.first else { return }
    let changed = zip(items, stored).filter { item, old in
      guard let value = item.value, let old else { return true }
      return bytes[value.part].withUnsafeBytes {
        !old.hasSameBytes(as: UnsafeRawBufferPointer(rebasing: $0[value.range]))
      }
    }.map(\.0)
    steps = changed.isEmpty ? [] : [.items(changed)]
  }

  /// Writes the changes to a database.
  ///
  /// - Returns: A Boolean value that indicates whether anything was set or removed.
  func write(to database: RawDatabase) throws -> Bool {
    var hasWritten = false
    for step in steps {
      let hasChanged =
        switch step {
        case .removeAll(let range): try database.removeAll(in: range)
        case .items(let items): try write(items, to: database)
        }
      if hasChanged { hasWritten = true }
    }
    return hasWritten
  }

  private func write(_ items: [Item], to database: RawDatabase) throws -> Bool {
    var hasWritten = false
    let cursor = try RawCursor(database)
    defer { cursor.close() }
    // The keys ascend: if the first key comes after all existing keys, so do the others.
    let isLast = try items[0].key.withUnsafeBytes { first in
      try cursor.move(MDB_LAST).map { $0.key.precedes(first) } ?? true
    }
    for item in items {
      let hasChanged = try item.key.withUnsafeBytes { key in
        guard let value = item.value else { return try cursor.removeValue(forKey: key) }
        try bytes[value.part].withUnsafeBytes {
          try cursor.setValue(UnsafeRawBufferPointer(rebasing: $0[value.range]), forKey: key, isLast: isLast)
        }
        return true
      }
      if hasChanged { hasWritten = true }
    }
    return hasWritten
  }
}
#endif
