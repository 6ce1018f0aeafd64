/*
 * pages.h - what engines answer at /metrics, shortened: the names, labels and forms are those of
 * their sources. vLLM 0.11 (vllm/v1/metrics/loggers.py) and 0.6 (vllm/engine/metrics.py); SGLang
 * 0.5 (python/sglang/srt/metrics/collector.py) and 0.4; TGI 3 (backends/v3) and llama.cpp's server,
 * new and of 2024.
 */
#ifndef TESTS_UNIT_WATCH_ENGINE_PAGES_H
#define TESTS_UNIT_WATCH_ENGINE_PAGES_H

#define L "{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"}"
#define VLLM                                                                                       \
	"# HELP python_gc_objects_collected_total Objects collected during gc\n"                   \
	"# TYPE python_gc_objects_collected_total counter\n"                                       \
	"python_gc_objects_collected_total{generation=\"0\"} 10031.0\n"                            \
	"# HELP vllm:num_requests_running Number of requests in model execution batches.\n"        \
	"# TYPE vllm:num_requests_running gauge\n"                                                 \
	"vllm:num_requests_running" L " 24.0\n"                                                    \
	"vllm:num_requests_waiting" L " 72.0\n"                                                    \
	"vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"m\",reason=\"capacity\"} "  \
	"72.0\n"                                                                                   \
	"# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.\n"             \
	"# TYPE vllm:kv_cache_usage_perc gauge\n"                                                  \
	"vllm:kv_cache_usage_perc" L " 0.975\n"                                                    \
	"vllm:num_preemptions_total" L " 3.0\n"                                                    \
	"vllm:num_preemptions_created" L " 1.789056823729462e+09\n"                                \
	"vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\","              \
	"num_gpu_blocks=\"27000\",num_gpu_blocks_override=\"None\"} 1.0\n"                         \
	"vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.001\",model_name=\"m\"} "     \
	"0.0\n"
#define O "{model_name=\"meta-llama/Llama-2-7b\"}"
#define VLLM_OLD                                                                                   \
	"# HELP vllm:cache_config_info information of cache_config\n"                              \
	"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n"                  \
	"vllm:num_requests_running" O " 8.0\n"                                                     \
	"vllm:num_requests_swapped" O " 2.0\n"                                                     \
	"vllm:num_requests_waiting" O " 0.0\n"                                                     \
	"# HELP vllm:gpu_cache_usage_perc GPU KV-cache usage. 1 means 100 percent usage.\n"        \
	"vllm:gpu_cache_usage_perc" O " 1.0\n"                                                     \
	"vllm:cpu_cache_usage_perc" O " 0.5\n"                                                     \
	"vllm:num_preemptions_total" O " 0.0\n"
#define S(rank)                                                                                    \
	"{engine_type=\"unified\",model_name=\"qwen\",moe_ep_rank=\"0\",tp_rank=\"" rank "\"}"
#define SGLANG                                                                                     \
	"# TYPE sglang:num_running_reqs gauge\n"                                                   \
	"sglang:num_running_reqs" S(                                                               \
	    "0") " 40.0\n"                                                                         \
		 "sglang:num_running_reqs" S(                                                      \
		     "1") " 40.0\n"                                                                \
			  "sglang:num_used_tokens" S(                                              \
			      "0") " 150000.0\n"                                                   \
				   "sglang:token_usage" S(                                         \
				       "0") " 0.93\n"                                              \
					    "sglang:num_queue_reqs" S(                             \
						"0") " 5.0\n"                                      \
						     "sglang:max_total_num_tokens" S(              \
							 "0") " 161721.0\n"                        \
							      "sglang:num_retracted_reqs" S(       \
								  "0") " 2.0\n"                    \
								       "sglang:num_retracted_"     \
								       "requests_total" S(         \
									   "0") " 11.0\n"
#define SGLANG_OLD                                                                                 \
	"# HELP sglang:token_usage The token usage\n"                                              \
	"sglang:token_usage{name=\"google/gemma-2-9b-it\"} 0.28\n"                                 \
	"sglang:num_running_reqs{name=\"google/gemma-2-9b-it\"} 3.0\n"                             \
	"sglang:num_queue_reqs{name=\"google/gemma-2-9b-it\"} 0.0\n"
#define TGI                                                                                        \
	"# TYPE tgi_request_count counter\ntgi_request_count 77\n\n"                               \
	"# TYPE tgi_queue_size gauge\ntgi_queue_size 4\n\n"                                        \
	"# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 8\n\n"                        \
	"# TYPE tgi_batch_current_max_tokens gauge\ntgi_batch_current_max_tokens 2048\n\n"
#define LLAMA                                                                                      \
	"# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.\n"                 \
	"# TYPE llamacpp:prompt_tokens_total counter\n"                                            \
	"llamacpp:prompt_tokens_total 6886\n"                                                      \
	"llamacpp:requests_processing 4\n"                                                         \
	"llamacpp:requests_deferred 1\n"
#define LLAMA_OLD                                                                                  \
	LLAMA "llamacpp:kv_cache_usage_ratio 0.63\n"                                               \
	      "llamacpp:kv_cache_tokens 1234\n"

#endif
