import Larder

/// Every path below a folder with its record, in the byte order of the paths, which is the order of a store's keys.
///
/// The walk reads one folder at a time when it reaches it. Its memory depends on the size of the folders above the
/// current one, not on the tree. Symbolic links are recorded but not followed.
///
/// Items that cannot be read, or whose path is too long for a key, are omitted and recorded in ``problems``.
final class FolderWalk: Sequence, IteratorProtocol {
  private enum Step {
    /// To return an entry.
    case entry(path: StoreKey, record: FileRecord)
    /// To read a folder, whose path ends in "/".
    case contents(path: StoreKey)

    /// The position of the step in the walk.
    ///
    /// The contents of a folder start at its path with "/". "a", "a.b" and "a/c" are therefore in byte order, although
    /// "a/c" is inside "a".
    var path: StoreKey {
      switch self {
      case .entry(let path, _), .contents(let path): path
      }
    }
  }

  /// The items that the walk had to omit so far.
  private(set) var problems = WalkProblems()

  private let root: [UInt8]

  /// The remaining steps, the next one last.
  private var steps: [Step] = []

  /// Starts a walk.
  ///
  /// - Parameter root: The path of the folder. It may be a symbolic link to a folder.
  /// - Throws: ``SystemError`` if the folder cannot be read.
  init(root: String) throws(SystemError) {
    self.root = Array(root.utf8)
    push(try FolderReader.items(ofFolder: self.root, followsLink: true), under: "")
  }

  /// Returns the next entry with its path relative to the root, or `nil` at the end.
  func next() -> StoreEntry<FileRecord>? {
    while let step = steps.popLast() {
      switch step {
      case .entry(let path, let record):
        guard path.count <= StoreKey.maximumLength else {
          problems.noteTooLong(path)
          continue
        }
        return StoreEntry(key: path, value: record)
      case .contents(let path):
        do {
          let folder = root + [UInt8(ascii: "/")] + path.bytes
          push(try FolderReader.items(ofFolder: folder, followsLink: false), under: path)
        } catch  where error.meansGone {
          // It was removed or replaced since its parent was read, so it has no contents.
          continue
        } catch {
          problems.noteUnreadable(path, error)
        }
      }
    }
    return nil
  }

  private func push(_ items: [FolderReader.Item], under folder: StoreKey) {
    let parent = folder.bytes
    var found: [Step] = []
    for item in items {
      let path = StoreKey(bytes: parent + item.name.bytes)
      switch item.record {
      case .success(let record):
        found.append(.entry(path: path, record: record))
        if record.kind == .folder {
          found.append(.contents(path: StoreKey(bytes: path.bytes + [UInt8(ascii: "/")])))
        }
      case .failure(let error):
        problems.noteUnreadable(path, error)
      }
    }
    steps.append(contentsOf: found.sorted { $0.path > $1.path })
  }
}
