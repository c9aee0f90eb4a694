import Larder
import Testing

/// The counter for which closing waits.
@Suite(.timeLimit(.minutes(60))) struct RunningOperationsTests {
  /// A number that tasks change.
  private final class Count: Sendable {
    private let number = Locked(0)
    var value: Int { number.withLock { $0 } }
    func add(_ difference: Int) { number.withLock { $0 += difference } }
  }

  @Test func `closing waits for the running operations and refuses others`() async {
    let operations = RunningOperations()
    #expect(operations.begin() && operations.begin() && !operations.isClosing)
    let isClosed = Count()
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask {
          await operations.close()
          isClosed.add(1)
        }
      }
      while !operations.isClosing { await Task.yield() }
      #expect(!operations.begin())
      operations.end()
      for _ in 0..<100 { await Task.yield() }
      #expect(isClosed.value == 0)
      operations.end()
    }
    #expect(isClosed.value == 2)
    #expect(!operations.begin())
    await operations.close()
  }

  @Test func `no operation runs after closing`() async {
    for _ in 0..<500 {
      let operations = RunningOperations()
      let running = Count()
      await withTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            while operations.begin() {
              running.add(1)
              await Task.yield()
              running.add(-1)
              operations.end()
            }
          }
        }
        for _ in 0..<2 {
          group.addTask {
            await operations.close()
            #expect(running.value == 0)
          }
        }
      }
    }
  }
}
