import Larder
import LarderQueue
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of `larder queue watch`.
@Suite struct QueueWatchTests {
  private let folder: TemporaryFolder
  private let queue: String

  init() throws {
    folder = try TemporaryFolder()
    queue = "queue:\(folder.file("queue"))"
  }

  @Test func `rates are changes per second`() {
    let first = QueueLook(
      statistics: QueueStatistics(counts: QueueCounts(waiting: 10, delayed: 1, leased: 0, dead: 2)), time: .seconds(1))
    let second = QueueLook(
      statistics: QueueStatistics(
        counts: QueueCounts(waiting: 5, delayed: 1, leased: 2, dead: 3), oldestAge: .milliseconds(1500)),
      time: .seconds(3))
    let rates = second.rates(since: first)
    #expect(rates == [-2.5, 0, 1, 0.5])
    #expect(second.rates(since: second) == nil)
    #expect(
      second.json(rates) == """
        {"waiting":5,"delayed":1,"leased":2,"dead":3,"oldestAge":1.500,\
        "perSecond":{"waiting":-2.500,"delayed":0.000,"leased":1.000,"dead":0.500}}
        """)
    #expect(
      second.text(rates) == "waiting 5 (-2.5/s)  delayed 1 (+0.0/s)  leased 2 (+1.0/s)  dead 3 (+0.5/s)  oldest 1.5 s")
    #expect(first.text(nil) == "waiting 10  delayed 1  leased 0  dead 2")
  }

  @Test func `other programs use the queue between two looks`() async throws {
    #expect(try await Tool.larder("queue", "enqueue", queue, "1").status == 0)
    // The watch looks again only after the second item is enqueued.
    let line = """
      larder queue watch "$1" --every 10ms --count 1000 --wait 5m | {
        read -r first
        larder queue enqueue "$1" 2 --wait 5m > /dev/null || exit 1
        while read -r line; do case $line in *'"waiting":2'*) exit 0;; esac; done; exit 2; }
      """
    #expect(try await Tool.shell(line, queue) == .done())
  }

  @Test func `a queue that a program keeps open is not counted`() async throws {
    #expect(try await Tool.larder("queue", "enqueue", queue, "1").status == 0)
    let holder = try await QueueStore<[UInt8]>(path: folder.file("queue"), codec: RawJSON())
    let run = try await Tool.larder("queue", "watch", queue, "--wait", "0s")
    #expect(run.failed(75, "only that program can count its items"))
    try await holder.close()
    #expect(try await Tool.larder("queue", "watch", queue, "--every", "0s").failed(64, "greater than zero"))
    #expect(try await Tool.larder("queue", "watch", queue, "--count", "0").failed(64, "at least 1"))
  }
}
