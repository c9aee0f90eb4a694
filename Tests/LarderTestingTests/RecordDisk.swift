import Larder
import Synchronization

/// What a ``RecordStore`` keeps between closing and opening: encoded values in memory, and whether a store has it open.
final class RecordDisk: Sendable {
  struct State: Sendable {
    var records = SortedMap<[UInt8]>()
    var hasWriter = false
    var readers = 0
    /// How often it was opened.
    var openings = 0
  }

  let state = Mutex(State())
}
