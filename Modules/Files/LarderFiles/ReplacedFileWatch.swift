import CFileSystem
import Synchronization

/// A check whether another file has taken the place of an open one, for stores that read often.
///
/// It looks at the path at most every 50 milliseconds. A check in between takes a few nanoseconds. The open file must stay
/// open, because otherwise another file could get its inode.
///
/// ```swift
/// let watch = ReplacedFileWatch(try file.attributes().identity, at: path)
/// …
/// guard try !watch.isReplaced() else { throw conflict }
/// ```
public final class ReplacedFileWatch: Sendable {
  /// The time between two looks, in nanoseconds.
  public static let interval: UInt64 = 50_000_000

  private let identity: FileAttributes.Identity
  private let path: String
  private let fileSystem: any StoreFileSystem
  private let now: @Sendable () -> UInt64

  private let nextLook = Atomic<UInt64>(0)
  private let found = Atomic<Bool>(false)

  /// Creates a watch.
  ///
  /// - Parameters:
  ///   - identity: The identity of the open file.
  ///   - path: The path of the file, without symbolic links.
  ///   - fileSystem: The file system. Defaults to the real one.
  ///   - now: A closure that returns a time in nanoseconds that never goes backward. Defaults to a monotonic clock of the
  ///     system. It is some milliseconds late.
  public init(
    _ identity: FileAttributes.Identity, at path: String, in fileSystem: some StoreFileSystem = POSIXFileSystem(),
    now: @escaping @Sendable () -> UInt64 = { ReplacedFileWatch.coarseTime }
  ) {
    self.identity = identity
    self.path = path
    self.fileSystem = fileSystem
    self.now = now
  }

  /// Returns whether another file is at the path, or was there at an earlier look.
  ///
  /// A file that was moved or removed, with nothing in its place, is not replaced.
  ///
  /// - Returns: A Boolean value that indicates whether the file was replaced, at most ``interval`` ago if it was not.
  /// - Throws: ``FileError`` if the path cannot be examined.
  public func isReplaced() throws(FileError) -> Bool {
    if found.load(ordering: .relaxed) { return true }
    let time = now()
    let next = nextLook.load(ordering: .relaxed)
    // One thread looks, and the others go by its last look.
    guard time >= next,
      nextLook.compareExchange(expected: next, desired: time + ReplacedFileWatch.interval, ordering: .relaxed).exchanged
    else { return false }
    do throws(FileError) {
      guard let present = try fileSystem.identity(at: path), present != identity else { return false }
    } catch {
      // The next check looks again.
      nextLook.store(next, ordering: .relaxed)
      throw error
    }
    found.store(true, ordering: .relaxed)
    return true
  }

  /// The time of a monotonic clock that is fast to read, in nanoseconds.
  public static var coarseTime: UInt64 {
    larder_coarse_time()
  }
}
