-- Sends one call envelope a request, each with an id of its own, so that none is a duplicate.
local token = os.getenv("BENCH_TOKEN")
local counter = 0
local thread = 0
local threads = 0

function setup(worker)
  worker:set("thread", threads)
  threads = threads + 1
end

function init()
  wrk.method = "POST"
  wrk.path = "/v1/tools/call"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer " .. token
end

local before = '{"contractVersion":"1.1","requestId":"018f-'
local after = '","toolName":"noop","toolNamespace":"bench.tools",'
  .. '"target":{"sessionKey":"bench","actorId":"wrk","turnId":"one"},'
  .. '"payload":{"version":"1.0","params":{"text":"' .. string.rep("x", 200) .. '"}},'
  .. '"transport":{"dedupeMode":"enforced","retryBudget":{"maxAttempts":4,"maxElapsedMs":30000}}}'

function request()
  counter = counter + 1
  return wrk.format(nil, nil, nil, before .. thread .. "-" .. counter .. after)
end

function response(status, headers, body)
  if status ~= 200 then
    io.stderr:write("bench: status " .. status .. ": " .. body .. "\n")
    os.exit(1)
  end
end
