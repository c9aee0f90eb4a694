import Larder

/// Every path below a folder with its record, in the byte order of the paths: the order of a store's keys.
///
/// It reads one folder at a time and goes down as it comes to it, so its memory follows the size of the folders on the
/// way down, not that of the tree. Symbolic links are recorded and not followed.
///
/// What cannot be read, and what has too long a path for a key, is left out and kept in ``problems``.
final class FolderWalk: Sequence, IteratorProtocol {
  private enum Step {
    /// To hand out an entry.
    case entry(path: StoreKey, record: FileRecord)
    /// To read a folder; its path ends in "/".
    case contents(path: StoreKey)

    /// Where the step stands in the walk.
    ///
    /// A folder's contents begin with its path and "/", so that "a", "a.b" and "a/c" come in the order of their bytes
    /// though "a/c" lies in "a".
    var path: StoreKey {
      switch self {
      case .entry(let path, _), .contents(let path): path
      }
    }
  }

  /// What the walk had to leave out until now.
  private(set) var problems = WalkProblems()

  private let root: [UInt8]

  /// What is still to do, the next step last.
  private var steps: [Step] = []

  /// Starts a walk.
  ///
  /// - Parameter root: The folder's path; it may be a symbolic link to a folder.
  /// - Throws: ``SystemError`` where the folder cannot be read.
  init(root: String) throws(SystemError) {
    self.root = Array(root.utf8)
    push(try FolderReader.items(ofFolder: self.root, followsLink: true), under: "")
  }

  /// The next entry, its path relative to the root, or `nil` at the end.
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
          // It went, or became something else, since its own folder was read: it has no contents.
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
