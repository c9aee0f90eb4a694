import LarderConfiguration
import LarderQueue
import Logging
import ServiceLifecycle
import UnixSignals

var mailQueue: QueueStore<String> { standIn() }
var mails: QueueStore<String> { standIn() }
var reports: QueueStore<Report> { standIn() }
var outbox: QueueStore<Event> { standIn() }
var stacks: Stacks { standIn() }
var worker: QueueWorker { standIn() }

func render(_ report: Report) async throws {}

extension QueueWorker_ServiceSamples {
  static var logger: Logger { standIn() }
}
