import Foundation
import Larder
import LarderFiles
import TestSupport
import Testing

@Suite struct ReplacedFileWatchTests {
  @Test func `looks once in an interval`() throws {
    let folder = try TemporaryFolder()
    let fileSystem = POSIXFileSystem()
    try folder.write("one", to: "file")
    let file = try fileSystem.open(folder.path("file"), .read)
    let time = Locked<UInt64>(1_000_000_000)
    let watch = ReplacedFileWatch(try file.attributes().identity, at: folder.path("file")) { time.withLock { $0 } }
    #expect(try !watch.isReplaced())
    try folder.write("two", to: "other")
    try fileSystem.rename(folder.path("other"), to: folder.path("file"))
    #expect(try !watch.isReplaced(), "it has looked just now")
    time.withLock { $0 += ReplacedFileWatch.interval }
    #expect(try watch.isReplaced())
    try fileSystem.removeFile(at: folder.path("file"))
    #expect(try watch.isReplaced(), "it stays replaced")
    #expect(try file.size() == 3)
  }

  @Test func `a missing file is not replaced`() throws {
    let folder = try TemporaryFolder()
    try folder.write("one", to: "file")
    let file = try POSIXFileSystem().open(folder.path("file"), .read)
    let time = Locked<UInt64>(0)
    let watch = ReplacedFileWatch(try file.attributes().identity, at: folder.path("file")) {
      time.withLock { time in
        time += ReplacedFileWatch.interval
        return time
      }
    }
    try POSIXFileSystem().rename(folder.path("file"), to: folder.path("elsewhere"))
    #expect(try !watch.isReplaced())
    try folder.write("two", to: "file")
    #expect(try watch.isReplaced())
  }

  @Test func `the clock of the system advances`() throws {
    let start = ReplacedFileWatch.coarseTime
    while ReplacedFileWatch.coarseTime == start { sched_yield() }
    #expect(ReplacedFileWatch.coarseTime > start)
  }
}
